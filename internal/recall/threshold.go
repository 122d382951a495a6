package recall

// Thresholds of likeness are not portable: texts that say the same have a cosine of
// 0.4 with one embedder and of 0.9 with another, and so have texts that have nothing
// in common. Likeness is therefore given on one scale for all: 0 is what unrelated
// notes have, and at 0.75 three of four pairs are ones a person calls alike.

// A scale places an embedder's cosines: what unrelated texts have, and what texts
// have of which three in four are alike.
type scale struct{ floor, alike float64 }

// alikeAt is where on the common scale three of four pairs are alike.
const alikeAt = 0.75

// Measured on the pairs of STS-B (TestThresholdsMeanTheSameForEveryEmbedder): alike
// is a person's mark of 3 or more of 5.
var (
	learntAlike  = scale{floor: 0.005, alike: 0.69}
	hashingAlike = scale{floor: 0.03, alike: 0.345}
)

// alike places a cosine on the common scale, 0 to 1.
func alike(s scale, cosine float64) float64 {
	if s.alike <= s.floor {
		return 0
	}
	return min(max((cosine-s.floor)/(s.alike-s.floor)*alikeAt, 0), 1)
}

// above is a cosine less what unrelated notes have.
func (c Calibration) above(cosine float32) float32 { return max(cosine-float32(c.Floor), 0) }

// alike places a provider's cosine on the common scale: its floor is measured on the
// notes, its 0.75 is as far up as the seeds' 0.75 of a model whose floor is 0.
func (c Calibration) alike(cosine float32) float64 {
	return alike(scale{floor: c.Floor, alike: c.Floor + alikeAt*(1-c.Floor)}, float64(cosine))
}
