"""Models on claims: a folder of this machine as a volume."""


def model_claim(stage, claim, folder, repo):
    """A claim whose volume holds a model, its weights as holes."""
    root = stage.folder / "claims" / claim
    (root / folder).mkdir(parents=True)
    for name, content in repo.files.items():
        with (root / folder / name).open("wb") as file:
            file.write(content.head)
            file.truncate(content.size_bytes)
    size = {"storage": "20Gi"}
    claims = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": claim},
        "spec": {**claims, "capacity": size, "hostPath": {"path": str(root)}},
    }
    wish = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim},
        "spec": {**claims, "volumeName": claim, "resources": {"requests": size}},
    }
    for each in (volume, wish):
        stage.apply(each)
    bound = "jsonpath={.status.phase}"
    stage.eventually(
        lambda: stage.plane.kubectl("get", "pvc", claim, "-o", bound) == "Bound",
        what=f"the claim {claim} is bound",
    )
