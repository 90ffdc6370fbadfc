/* libnvidia-ml.so.1 without a driver: answers from a scenario file, one "key value" a line.
 *
 * NVML_SCENARIO names the file; it is read at nvmlInitWithFlags and at every nvmlDeviceGetCount_v2.
 *   driver 580.95.05 · nvml 13.580 · cuda 13000 · init 9 (what nvmlInitWithFlags returns)
 *   gpu.0.name NVIDIA L40S · gpu.0.total_mib 46068 · gpu.0.mig.2.memory_mib 4864 · ...
 *   fail.nvmlDeviceGetName 999 · fail.nvmlDeviceGetName.1 15 (GPU 1 only)
 *   gpu.0.lost 1 (every question about it) · gpu.0.lost_after 3 (after that many)
 * A fact the scenario does not hold is "not supported", as on hardware that lacks it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7, TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
       ARGUMENT_VERSION_MISMATCH = 25 };
enum { MAX_LINES = 4096, MAX_GPUS = 64, MAX_MIG = 16, LINE_BYTES = 512 };

typedef struct { int gpu, mig, asked; } Device;   /* mig is -1 for a whole GPU */
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned sm, copy, decoder, encoder, jpeg, ofa, gi_slices, ci_slices;
                 unsigned long long memory_mib; } Attributes;
typedef struct { unsigned version; unsigned char cluster[16]; unsigned status, clique, state,
                 health; } Fabric;
typedef struct { Device *device; unsigned long long type, data; unsigned gi, ci; } Event;

static char lines[MAX_LINES][LINE_BYTES];
static int line_count, initialised, xid_told[MAX_GPUS];
static Device devices[MAX_GPUS][MAX_MIG + 1];

static int read_scenario(void) {
    const char *path = getenv("NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return 0;
    line_count = 0;
    while (line_count < MAX_LINES && fgets(lines[line_count], LINE_BYTES, file)) {
        char *line = lines[line_count];
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] && line[0] != '#') line_count++;
    }
    fclose(file);
    return 1;
}

static const char *text(const char *key) {
    size_t length = strlen(key);
    for (int i = 0; i < line_count; i++)
        if (!strncmp(lines[i], key, length) && lines[i][length] == ' ') return lines[i] + length + 1;
    return NULL;
}

static const char *fact(const Device *device, const char *name) {
    char key[LINE_BYTES];
    if (device->mig < 0) snprintf(key, sizeof key, "gpu.%d.%s", device->gpu, name);
    else snprintf(key, sizeof key, "gpu.%d.mig.%d.%s", device->gpu, device->mig, name);
    return text(key);
}

static int number(const Device *device, const char *name, unsigned long long *value) {
    const char *found = fact(device, name);
    if (!found) return NOT_SUPPORTED;
    *value = strtoull(found, NULL, 10);
    return SUCCESS;
}

static int small(const Device *device, const char *name, unsigned *value) {
    unsigned long long found;
    int code = number(device, name, &found);
    if (code == SUCCESS) *value = (unsigned)found;
    return code;
}

static int fault(const char *function, int gpu) {
    char key[LINE_BYTES];
    const char *code;
    snprintf(key, sizeof key, "fail.%s.%d", function, gpu);
    if (gpu >= 0 && (code = text(key))) return atoi(code);
    snprintf(key, sizeof key, "fail.%s", function);
    return (code = text(key)) ? atoi(code) : SUCCESS;
}

static int ask(Device *device, const char *function) {
    unsigned long long after;
    if (!initialised) return UNINITIALIZED;
    if (!device) return INVALID_ARGUMENT;
    Device *gpu = &devices[device->gpu][MAX_MIG];
    gpu->asked++;
    if (fact(gpu, "lost")) return GPU_IS_LOST;
    if (!number(gpu, "lost_after", &after) && gpu->asked > (int)after) return GPU_IS_LOST;
    return fault(function, device->gpu);
}

#define SYSTEM() do { int code_ = initialised ? fault(__func__, -1) : UNINITIALIZED; \
                      if (code_) return code_; } while (0)
#define ASK(device) do { int code_ = ask(device, __func__); if (code_) return code_; } while (0)

static int copy(const char *value, char *buffer, unsigned length) {
    if (!value) return NOT_SUPPORTED;
    if (strlen(value) >= length) return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return SUCCESS;
}

/* -- the library ------------------------------------------------------------------------------ */

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (!read_scenario()) return FUNCTION_NOT_FOUND;
    const char *code = text("init");
    if (code && atoi(code)) return atoi(code);
    int failed = fault(__func__, -1);
    if (failed) return failed;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++)
        for (int mig = 0; mig <= MAX_MIG; mig++)
            devices[gpu][mig] = (Device){gpu, mig == MAX_MIG ? -1 : mig, 0};
    memset(xid_told, 0, sizeof xid_told);   /* a new session hears of what is still so */
    initialised = 1;
    return SUCCESS;
}

int nvmlShutdown(void) {
    SYSTEM();
    initialised = 0;
    const char *path = text("shutdown_file");   /* lets a test see that the session was closed */
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) fclose(file);
    return SUCCESS;
}

const char *nvmlErrorString(int code) {
    switch (code) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case 9: return "Driver Not Loaded";
    case FUNCTION_NOT_FOUND: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned length) {
    SYSTEM();
    return copy(text("driver"), buffer, length);
}

int nvmlSystemGetNVMLVersion(char *buffer, unsigned length) {
    SYSTEM();
    return copy(text("nvml"), buffer, length);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    SYSTEM();
    const char *found = text("cuda");
    if (!found) return NOT_SUPPORTED;
    *version = atoi(found);
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    if (initialised) read_scenario();
    SYSTEM();
    for (*count = 0; *count < MAX_GPUS && fact(&devices[*count][MAX_MIG], "name"); (*count)++);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    SYSTEM();
    if (index >= MAX_GPUS || !fact(&devices[index][MAX_MIG], "name")) return INVALID_ARGUMENT;
    int failed = fault(__func__, (int)index);
    if (failed) return failed;
    *device = &devices[index][MAX_MIG];
    return SUCCESS;
}

/* -- one GPU ---------------------------------------------------------------------------------- */

#define TEXT_FACT(function, name) \
    int function(Device *device, char *buffer, unsigned length) { \
        ASK(device); return copy(fact(device, name), buffer, length); }
#define NUMBER_FACT(function, name) \
    int function(Device *device, unsigned *value) { ASK(device); return small(device, name, value); }

TEXT_FACT(nvmlDeviceGetName, "name")
TEXT_FACT(nvmlDeviceGetUUID, "uuid")
NUMBER_FACT(nvmlDeviceGetMinorNumber, "minor")
NUMBER_FACT(nvmlDeviceGetBrand, "brand")
NUMBER_FACT(nvmlDeviceGetArchitecture, "architecture")
NUMBER_FACT(nvmlDeviceGetMemoryBusWidth, "memory_bus_width")
NUMBER_FACT(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER_FACT(nvmlDeviceGetNumaNodeId, "numa_node")
NUMBER_FACT(nvmlDeviceGetGpuInstanceId, "gi")
NUMBER_FACT(nvmlDeviceGetComputeInstanceId, "ci")

int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
    ASK(device);
    memset(pci, 0, sizeof *pci);
    const char *bus_id = fact(device, "pci_bus_id");
    if (!bus_id) return NOT_SUPPORTED;
    sscanf(bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    return copy(bus_id, pci->bus_id, sizeof pci->bus_id);
}

int nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    ASK(device);
    const char *found = fact(device, "compute_capability");
    return found && sscanf(found, "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

static int memory(Device *device, MemoryV2 *memory) {
    unsigned long long total, reserved = 0, used = 0;
    if (number(device, device->mig < 0 ? "total_mib" : "memory_mib", &total)) return NOT_SUPPORTED;
    number(device, "reserved_mib", &reserved);
    number(device, "used_mib", &used);
    memory->total = total << 20;
    memory->reserved = reserved << 20;
    memory->used = used << 20;
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(Device *device, Memory *value) {
    ASK(device);
    MemoryV2 found;
    int code = memory(device, &found);
    if (code) return code;
    *value = (Memory){found.total, found.free, found.used + found.reserved};
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *value) {
    ASK(device);
    if (value->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
    return memory(device, value);
}

int nvmlDeviceGetMaxClockInfo(Device *device, unsigned type, unsigned *mhz) {
    ASK(device);
    return type == 2 ? small(device, "memory_clock_mhz", mhz) : NOT_SUPPORTED;
}

int nvmlDeviceGetEccMode(Device *device, unsigned *current, unsigned *pending) {
    ASK(device);
    int code = small(device, "ecc", current);
    *pending = *current;
    small(device, "ecc_pending", pending);
    return code;
}

int nvmlDeviceGetRemappedRows(Device *device, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failure) {
    ASK(device);
    const char *found = fact(device, "remapped_rows");
    return found && sscanf(found, "%u %u %u %u", correctable, uncorrectable, pending, failure) == 4
               ? SUCCESS : NOT_SUPPORTED;
}

static int processes(const char *list, unsigned *count, Process *found) {   /* "pid:MiB pid:MiB" */
    unsigned room = *count, seen = 0, pid, offset = 0, read;
    unsigned long long mib;
    while (list && sscanf(list + offset, " %u:%llu%n", &pid, &mib, (int *)&read) == 2) {
        if (found && seen < room) found[seen] = (Process){pid, mib << 20, ~0u, ~0u};
        seen++;
        offset += read;
    }
    *count = seen;
    return seen > room || (seen && !found) ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *found) {
    ASK(device);
    return processes(fact(device, "processes"), count, found);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *count, Process *found) {
    ASK(device);
    return processes(fact(device, "graphics_processes"), count, found);
}

int nvmlDeviceGetVirtualizationMode(Device *device, unsigned *mode) {
    ASK(device);
    return small(device, "virtualization_mode", mode);
}

int nvmlDeviceGetAddressingMode(Device *device, unsigned *versioned) {
    ASK(device);
    return small(device, "addressing_mode", versioned + 1);
}

/* -- MIG -------------------------------------------------------------------------------------- */

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    ASK(device);
    int code = small(device, "mig", current);
    *pending = *current;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) {
    ASK(device);
    unsigned enabled = 0;
    small(device, "mig", &enabled);
    *count = enabled ? 7 : 0;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **mig) {
    ASK(device);
    if (index >= MAX_MIG) return INVALID_ARGUMENT;
    *mig = &devices[device->gpu][index];
    return fact(*mig, "uuid") ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(Device *device, unsigned *is_mig) {
    ASK(device);
    *is_mig = device->mig >= 0;
    return SUCCESS;
}

int nvmlDeviceGetAttributes_v2(Device *device, Attributes *found) {
    ASK(device);
    memset(found, 0, sizeof *found);
    if (device->mig < 0) return INVALID_ARGUMENT;
    small(device, "sm", &found->sm);
    small(device, "gi_slices", &found->gi_slices);
    found->ci_slices = found->gi_slices;
    small(device, "ci_slices", &found->ci_slices);
    return number(device, "memory_mib", &found->memory_mib);
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *device, Device **gpu) {
    ASK(device);
    *gpu = &devices[device->gpu][MAX_MIG];
    return device->mig >= 0 ? SUCCESS : INVALID_ARGUMENT;
}

/* -- between GPUs ----------------------------------------------------------------------------- */

int nvmlDeviceGetP2PStatus(Device *one, Device *other, unsigned index, unsigned *status) {
    ASK(one);
    ASK(other);
    const char *island = fact(one, "island"), *other_island = fact(other, "island");
    int linked = island && other_island && !strcmp(island, other_island);
    *status = index != 2 || linked ? 0 : 5;   /* 2 asks for NVLink, 5 is "not supported" */
    return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(Device *one, Device *other, unsigned *level) {
    ASK(one);
    ASK(other);
    unsigned numa = 0, other_numa = 0;
    small(one, "numa_node", &numa);
    small(other, "numa_node", &other_numa);
    *level = numa == other_numa ? 40 : 50;   /* same node, or across the system */
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *active) {
    ASK(device);
    if (!fact(device, "island")) return NOT_SUPPORTED;
    if (link >= 18) return INVALID_ARGUMENT;
    *active = 1;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, unsigned *type) {
    ASK(device);
    (void)link;
    *type = 2;   /* a switch */
    return fact(device, "island") ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *pci) {
    ASK(device);
    (void)link;
    memset(pci, 0, sizeof *pci);
    return NOT_SUPPORTED;
}

int nvmlDeviceGetGpuFabricInfoV(Device *device, Fabric *fabric) {
    ASK(device);
    unsigned state;
    if (small(device, "fabric_state", &state)) return NOT_SUPPORTED;
    fabric->status = SUCCESS;
    fabric->state = state;
    return SUCCESS;
}

/* -- events ----------------------------------------------------------------------------------- */

int nvmlEventSetCreate(void **set) {
    SYSTEM();
    *set = &line_count;
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(Device *device, unsigned long long *types) {
    ASK(device);
    return number(device, "event_types", types);
}

int nvmlDeviceRegisterEvents(Device *device, unsigned long long types, void *set) {
    ASK(device);
    (void)types, (void)set;
    return fact(device, "event_types") ? SUCCESS : NOT_SUPPORTED;
}

int nvmlEventSetWait_v2(void *set, Event *event, unsigned timeout) {
    SYSTEM();
    (void)set, (void)timeout;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {   /* an XID stands in the scenario, and is told once */
        Device *device = &devices[gpu][MAX_MIG];
        unsigned long long xid;
        if (!xid_told[gpu] && !number(device, "xid", &xid)) {
            *event = (Event){device, 8, xid, ~0u, ~0u};
            xid_told[gpu] = 1;
            return SUCCESS;
        }
    }
    return TIMEOUT;
}

int nvmlEventSetFree(void *set) {
    SYSTEM();
    return set ? SUCCESS : INVALID_ARGUMENT;
}
