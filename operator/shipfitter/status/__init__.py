"""Conditions and reasons: what a ModelDeployment's status says, and what each reason asks for."""
