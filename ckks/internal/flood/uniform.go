package flood

import (
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// Uniform is a uniform polynomial from the operating system's randomness.
func Uniform(ringQ *ring.Ring) (ring.Poly, error) {
	made := ringQ.NewPoly()
	source, err := sampling.NewPRNG()
	if err != nil {
		return made, err
	}
	ring.NewUniformSampler(source, ringQ).Read(made)
	return made, nil
}

// Keep leaves a polynomial in NTT form the coefficients that a result of a period has, and clears all others.
func Keep(ringQ *ring.Ring, poly ring.Poly, period int) {
	ringQ.INTT(poly, poly)
	step := ringQ.N() / period
	for i := range ringQ.SubRings[:ringQ.Level()+1] {
		for at := range poly.Coeffs[i] {
			if at%step != 0 {
				poly.Coeffs[i][at] = 0
			}
		}
	}
	ringQ.NTT(poly, poly)
}
