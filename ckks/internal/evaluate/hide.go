package evaluate

import (
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// floodBits is how far below the scale the noise lies that hides how a result was computed.
const floodBits = 20

// Hide re-randomises a result at level 0 with the client's encryption of zero.
//
// Without it a result is a deterministic function of the client's own ciphertexts and the weights: its second part is a
// linear function of weights that the client can solve for. With it the second part is as good as uniform, and what is
// left beside the value is noise, in which noise of 2^(scale - floodBits) drowns most of what rounding tells.
func Hide(params ckks.Parameters, zero, result *rlwe.Ciphertext) error {
	source, err := sampling.NewPRNG()
	if err != nil {
		return err
	}
	ringQ := params.RingQ().AtLevel(0)
	deviation := math.Exp2(float64(params.LogDefaultScale() - floodBits))
	flood := ring.DiscreteGaussian{Sigma: deviation, Bound: 6 * deviation}
	laws := []ring.DistributionParameters{params.Xs(), flood, params.Xe()}
	fresh := make([]ring.Poly, len(laws))
	for i, law := range laws {
		sampler, err := ring.NewSampler(source, params.RingQ(), law, false)
		if err != nil {
			return err
		}
		fresh[i] = ringQ.NewPoly()
		sampler.AtLevel(0).Read(fresh[i])
		ringQ.NTT(fresh[i], fresh[i])
	}
	ringQ.MForm(fresh[0], fresh[0])
	for part := range 2 {
		ringQ.MulCoeffsMontgomeryThenAdd(zero.Value[part], fresh[0], result.Value[part])
		ringQ.Add(result.Value[part], fresh[1+part], result.Value[part])
	}
	return nil
}
