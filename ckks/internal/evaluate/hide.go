package evaluate

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// HidingLevel is the level of results when they are re-randomised, just before the last rescaling.
const HidingLevel = 1

// floodBits is how far below the scale the deviation of the noise lies that is added to a result.
const floodBits = 22

// Hiding is what becomes of a result on its way out: at HidingLevel, and at level 0 after the last rescaling.
type Hiding interface {
	Randomise(result *rlwe.Ciphertext) error
	Flood(result *rlwe.Ciphertext) error
}

// Hider re-randomises results with the client's encryption of zero.
//
// Without it a result is a deterministic function of the client's own ciphertexts and the weights: its second part is a
// linear function of weights that the client can solve for. With it the second part is as good as uniform. What is left
// beside the value is noise, in which fresh noise of 2^(scale - floodBits) drowns what evaluation and rounding leave
// (a few times less, by measurement; this is no statistical proof).
type Hider struct {
	params               ckks.Parameters
	zero                 *rlwe.Ciphertext
	secret, noise, flood ring.Sampler
}

// NewHider takes the client's encryption of zero, at HidingLevel.
func NewHider(params ckks.Parameters, zero *rlwe.Ciphertext) (*Hider, error) {
	if zero.Level() != HidingLevel || zero.Degree() != 1 {
		return nil, fmt.Errorf("an encryption of zero at level %d, not %d", zero.Level(), HidingLevel)
	}
	source, err := sampling.NewPRNG()
	if err != nil {
		return nil, err
	}
	deviation := math.Exp2(float64(params.LogDefaultScale() - floodBits))
	h := &Hider{params: params, zero: zero}
	for _, law := range []struct {
		into         *ring.Sampler
		level        int
		distribution ring.DistributionParameters
	}{
		{&h.secret, HidingLevel, params.Xs()},
		{&h.noise, HidingLevel, params.Xe()},
		{&h.flood, 0, ring.DiscreteGaussian{Sigma: deviation, Bound: 6 * deviation}},
	} {
		sampler, err := ring.NewSampler(source, params.RingQ().AtLevel(law.level), law.distribution, false)
		if err != nil {
			return nil, err
		}
		*law.into = sampler
	}
	return h, nil
}

// Randomise adds a fresh encryption of zero to a result at HidingLevel: zero * u + (e, e').
func (h *Hider) Randomise(result *rlwe.Ciphertext) error {
	if result.Level() != HidingLevel {
		return fmt.Errorf("a result at level %d, not %d", result.Level(), HidingLevel)
	}
	ringQ := h.params.RingQ().AtLevel(HidingLevel)
	ephemeral := sample(ringQ, h.secret)
	ringQ.MForm(ephemeral, ephemeral)
	for part := range 2 {
		ringQ.MulCoeffsMontgomeryThenAdd(h.zero.Value[part], ephemeral, result.Value[part])
		ringQ.Add(result.Value[part], sample(ringQ, h.noise), result.Value[part])
	}
	return nil
}

// Flood adds noise to a result at level 0.
func (h *Hider) Flood(result *rlwe.Ciphertext) error {
	if result.Level() != 0 {
		return fmt.Errorf("a result at level %d, not 0", result.Level())
	}
	ringQ := h.params.RingQ().AtLevel(0)
	ringQ.Add(result.Value[0], sample(ringQ, h.flood), result.Value[0])
	return nil
}

// sample gives a polynomial in NTT form.
func sample(ringQ *ring.Ring, sampler ring.Sampler) ring.Poly {
	made := ringQ.NewPoly()
	sampler.Read(made)
	ringQ.NTT(made, made)
	return made
}
