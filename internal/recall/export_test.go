package recall

// VectorOf is the learnt vector of any text, for tests that need an embedder with
// some sense of meaning.
func (x *Index) VectorOf(text string) []float32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v := make([]float32, x.space.dims)
	for _, w := range x.parse(text).words {
		if w.term != stopped {
			addScaled(v, x.space.basis[w.term], logTF(w.count))
		}
	}
	return v
}

// AlikeAt are the scales of the built-in embedders.
func AlikeAt() (learnt, hashing struct{ Floor, Alike float64 }) {
	learnt.Floor, learnt.Alike = learntAlike.floor, learntAlike.alike
	hashing.Floor, hashing.Alike = hashingAlike.floor, hashingAlike.alike
	return learnt, hashing
}

// Mute makes questions possible again at once.
func (f *Feed) Unmute() { f.mu.Lock(); defer f.mu.Unlock(); f.mute = f.mute.AddDate(-1, 0, 0) }
