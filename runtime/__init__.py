"""How a plan is executed: targets, JIT and its cache, arrays, the driver."""
