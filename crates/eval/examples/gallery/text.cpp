int largest(const std::vector<int>& xs) {
  int best = xs[0];
  for (int x : xs) {
    if (x > best) best = x;
  }
  return best;
}
