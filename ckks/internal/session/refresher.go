package session

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/wire"
)

// refresher has the owner of the key refresh values obliviously: it decrypts uniform polynomials, and encrypts them again.
//
// Masks are uniform modulo the ciphertext's modulus and come off modulo a larger one. That is right as long as value and mask
// do not wrap around, of which the plan leaves a chance of 2^-plan.WrapBits for each coefficient.
type refresher struct {
	*evaluate.Randomiser
	evaluator *Evaluator
}

// Refresh sends all ciphertexts of a value at once, so that it takes one round trip.
func (r *refresher) Refresh(node int, values evaluate.Values, level int) (evaluate.Values, error) {
	e, period := r.evaluator, r.evaluator.Plan.Period(node)
	if err := e.request(request{Request: "refresh"}); err != nil {
		return nil, err
	}
	masks := make([]ring.Poly, len(values))
	for i, ct := range values {
		data, mask, err := r.masked(ct, period)
		if err != nil {
			return nil, err
		}
		if err := e.channel.Send(data); err != nil {
			return nil, err
		}
		masks[i] = mask
	}
	from, to := e.Params.RingQ().AtLevel(e.Plan.Floor), e.Params.RingQ().AtLevel(level)
	made := make(evaluate.Values, len(values))
	for i, mask := range masks {
		var err error
		if made[i], err = receiveSeeded(e.channel, "a refreshed value", e.Params, level); err != nil {
			return nil, err
		}
		to.Sub(made[i].Value[0], flood.Lift(from, mask, to, period), made[i].Value[0])
	}
	return made, nil
}

// masked is a ciphertext as it is sent, re-randomised, and the mask on its first part, in coefficients.
func (r *refresher) masked(ct *rlwe.Ciphertext, period int) ([]byte, ring.Poly, error) {
	params := r.evaluator.Params
	ringQ, hidden := params.RingQ().AtLevel(ct.Level()), ct.CopyNew()
	if err := r.Randomise(hidden); err != nil {
		return nil, ring.Poly{}, err
	}
	mask, err := flood.Uniform(ringQ)
	if err != nil {
		return nil, mask, err
	}
	first := hidden.Value[0]
	ringQ.INTT(first, first)
	ringQ.Add(first, mask, first)
	return wire.AppendMasked(nil, params, period, first, hidden.Value[1]), mask, nil
}
