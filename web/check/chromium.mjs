// How headless Chromium is started.

export const CHROMIUM_FLAGS = [
  "--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  // WebGPU in software, where there is no graphics processor.
  "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan", "--use-vulkan=swiftshader",
  "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
];
