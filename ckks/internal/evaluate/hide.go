package evaluate

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/plan"
)

// Hiding is what becomes of each of a result's ciphertexts on its way out: at the plan's HidingLevel, and after the last
// rescaling. `output` is the node that it belongs to.
type Hiding interface {
	Randomise(result *rlwe.Ciphertext) error
	Flood(result *rlwe.Ciphertext, output int) error
}

// Randomiser makes results independent of how they were computed, by an encryption of zero under their key.
//
// Without it a result is a deterministic function of the client's own ciphertexts and the weights: its second part is a
// linear function of weights that the client can solve for. With it the second part is as good as uniform.
type Randomiser struct {
	ringQ         *ring.Ring
	zero          *rlwe.Ciphertext
	secret, noise ring.Sampler
}

// NewRandomiser takes an encryption of zero at the highest level of ciphertexts that are to be randomised.
func NewRandomiser(params ckks.Parameters, zero *rlwe.Ciphertext) (*Randomiser, error) {
	if zero.Degree() != 1 {
		return nil, fmt.Errorf("an encryption of zero in %d parts, not 2", zero.Degree()+1)
	}
	source, err := sampling.NewPRNG()
	if err != nil {
		return nil, err
	}
	r := &Randomiser{ringQ: params.RingQ().AtLevel(zero.Level()), zero: zero}
	if r.secret, err = ring.NewSampler(source, r.ringQ, params.Xs(), false); err != nil {
		return nil, err
	}
	r.noise, err = ring.NewSampler(source, r.ringQ, params.Xe(), false)
	return r, err
}

// Randomise adds a fresh encryption of zero to a result: zero * u + (e, e').
func (r *Randomiser) Randomise(result *rlwe.Ciphertext) error {
	if result.Level() > r.zero.Level() {
		return fmt.Errorf("a result at level %d, above %d", result.Level(), r.zero.Level())
	}
	ringQ, ephemeral := r.ringQ.AtLevel(result.Level()), r.sample(r.secret)
	ringQ.MForm(ephemeral, ephemeral)
	for part := range 2 {
		ringQ.MulCoeffsMontgomeryThenAdd(r.zero.Value[part], ephemeral, result.Value[part])
		ringQ.Add(result.Value[part], r.sample(r.noise), result.Value[part])
	}
	return nil
}

// sample gives a polynomial in NTT form.
func (r *Randomiser) sample(sampler ring.Sampler) ring.Poly {
	made := r.ringQ.NewPoly()
	sampler.Read(made)
	r.ringQ.NTT(made, made)
	return made
}

// Hider hides the weights of a plaintext model in results for the client whose key they are under: it randomises them,
// and floods the noise that is left beside the value by as much as the plan says.
type Hider struct {
	*Randomiser
	params ckks.Parameters
	plan   *plan.Plan
}

// NewHider takes the client's encryption of zero.
func NewHider(params ckks.Parameters, p *plan.Plan, zero *rlwe.Ciphertext) (*Hider, error) {
	randomiser, err := NewRandomiser(params, zero)
	return &Hider{randomiser, params, p}, err
}

// Flood adds noise to a result.
func (h *Hider) Flood(result *rlwe.Ciphertext, output int) error {
	noise := flood.New(h.plan.FloodDeviation(output), h.plan.Period(output))
	return noise.Add(h.params.RingQ().AtLevel(result.Level()), result.Value[0])
}
