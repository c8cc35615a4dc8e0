// Stands for NVIDIA's management library in tests: two GPUs, of which each call of the energy's
// function shows two joules more than the one before. The second one does not tell its utilisation.

namespace {

int devices[2];
unsigned long long millijoules = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 2) return 2;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* energy) {
  millijoules += 2000;
  *energy = millijoules;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 150'000;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned shares[2]) {
  if (device != &devices[0]) return 3;
  shares[0] = 80;
  shares[1] = 35;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long memory[3]) {
  memory[0] = 1 << 30;
  memory[1] = (1 << 30) - 4096;
  memory[2] = 4096;
  return 0;
}

}  // extern "C"
