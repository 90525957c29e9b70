// silu(gate) * up: one element a thread.
uint i = thread_position_in_grid.x;
float g = float(gate[i]);
out[i] = T(g / (1.0f + metal::precise::exp(-g)) * float(up[i]));
