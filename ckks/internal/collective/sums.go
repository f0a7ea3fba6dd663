package collective

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/wire"
)

// Members use sums of shares that a coordinator made: the public key, under which the owner encrypts the model, and the first
// round of the relinearisation key, which each member multiplies by its secret. A sum that is not one gives the secret away. So
// members agree on the sums that they got, and then each tells the others a random linear map of its own shares, with a
// challenge that nobody knew before: if the maps add up to that of the sums, so do the shares.

// Sums are the two, as this member got them.
type Sums struct {
	public *rlwe.PublicKey
	first  *rlwe.GadgetCiphertext
	digest [sha256.Size]byte
}

// TakeSums reads the sums of all members' shares of the public key and of the relinearisation key's first round. They are used
// once CheckSums has found them right.
func (m *Member) TakeSums(public, first []byte) error {
	if m.ephemeral == nil || m.sums != nil {
		return fmt.Errorf("sums of shares come once, after the first round")
	}
	protocol := multiparty.NewPublicKeyGenProtocol(m.params)
	sum := protocol.AllocateShare()
	if err := wire.ReadQP(public, m.params, sum.Value); err != nil {
		return err
	}
	stream, err := wire.Stream(m.common.seedOf(publicLabel))
	if err != nil {
		return err
	}
	made := &Sums{public: rlwe.NewPublicKey(m.params), digest: sha256.Sum256(first)}
	protocol.GenPublicKey(sum, protocol.SampleCRP(stream), made.public)
	_, gadget, _ := multiparty.NewRelinearizationKeyGenProtocol(m.params).AllocateShare()
	if err := wire.ReadGadget(first, m.params, &gadget.GadgetCiphertext); err != nil {
		return err
	}
	made.first = &gadget.GadgetCiphertext
	m.sums = made
	return nil
}

// SumsDigest names what this member got, and the common randomness.
func (m *Member) SumsDigest() [sha256.Size]byte {
	key := PublicKeyDigest(m.params, m.sums.public)
	text := append(append([]byte("privet ckks sums"), m.common.seed[:]...), key[:]...)
	return sha256.Sum256(append(text, m.sums.digest[:]...))
}

// CohortKey is the cohort's public key, once it is checked.
func (m *Member) CohortKey() (*rlwe.PublicKey, error) {
	if !m.checked {
		return nil, errUnchecked
	}
	return m.sums.public, nil
}

var errUnchecked = fmt.Errorf("the members have not yet compared the sums of their shares")

// PublicKeyDigest names a public key.
func PublicKeyDigest(params ckks.Parameters, key *rlwe.PublicKey) [sha256.Size]byte {
	return sha256.Sum256(wire.AppendQP(nil, params, key.Value...))
}

// ProjectShares is the linear map of this member's own shares that a challenge gives.
func (m *Member) ProjectShares(challenge [sha256.Size]byte) ([]byte, error) {
	return project(m.params, challenge, m.publicShare, m.firstShare)
}

// CheckSums compares what the sums give with the sum of all members' projections. After that this member uses them.
func (m *Member) CheckSums(challenge [sha256.Size]byte, projections [][]byte) error {
	if m.sums == nil {
		return errUnchecked
	}
	total, err := project(m.params, challenge, m.sums.public.Value[0], m.sums.first)
	if err != nil {
		return err
	}
	primes := append(append([]uint64{}, m.params.Q()...), m.params.P()...)
	for member, projection := range projections {
		if len(projection) != len(total) {
			return fmt.Errorf("member %d: a projection of %d bytes, not %d", member, len(projection), len(total))
		}
	}
	for i := 0; i < len(total)/8; i++ {
		sum, prime := uint64(0), primes[i%len(primes)]
		for member, projection := range projections {
			value := binary.LittleEndian.Uint64(projection[8*i:])
			if value >= prime {
				return fmt.Errorf("member %d: a projection is no residue", member)
			}
			sum = (sum + value) % prime
		}
		if sum != binary.LittleEndian.Uint64(total[8*i:]) {
			return fmt.Errorf("the coordinator's sums are not those of the members' shares: what they would be used for gives this member's secret away")
		}
	}
	m.checked = true
	return nil
}

// soundness is by how many bits a wrong sum is found.
const soundness = 128

// project maps shares linearly to a residue modulo each prime, several times: sum over k of r_k (sum over i of t_k^i x_ik) for
// polynomials x_i and random t and r. Shares that differ have the same map with a chance of (count + 1) / prime.
func project(params ckks.Parameters, challenge [sha256.Size]byte, public ringqp.Poly, gadget *rlwe.GadgetCiphertext) ([]byte, error) {
	stream, err := wire.Stream(challenge)
	if err != nil {
		return nil, err
	}
	ringQP := params.RingQP()
	sampler := ringqp.NewUniformSampler(stream, *ringQP)
	polys := []ringqp.Poly{public}
	for _, digit := range gadget.Value {
		polys = append(polys, digit[0]...)
	}
	smallest := math.Inf(1)
	for _, prime := range append(append([]uint64{}, params.Q()...), params.P()...) {
		smallest = min(smallest, math.Log2(float64(prime)))
	}
	each := int(smallest) - bits.Len(uint(len(polys)+1))
	var made []byte
	for range (soundness + each - 1) / each {
		t, r, sum := sampler.ReadNew(), sampler.ReadNew(), ringQP.NewPoly()
		for _, poly := range polys {
			ringQP.MulCoeffsMontgomery(sum, t, sum)
			ringQP.Add(sum, poly, sum)
		}
		ringQP.MulCoeffsMontgomery(sum, r, sum)
		for _, part := range []struct {
			primes []uint64
			coeffs [][]uint64
		}{{params.Q(), sum.Q.Coeffs}, {params.P(), sum.P.Coeffs}} {
			for i, prime := range part.primes {
				total := uint64(0)
				for _, value := range part.coeffs[i] {
					total = (total + value) % prime
				}
				made = binary.LittleEndian.AppendUint64(made, total)
			}
		}
	}
	return made, nil
}
