// Package bootstrap refreshes ciphertexts without their key: central bootstrapping, by Lattigo's circuit. A model's
// ciphertexts are in a ring of reals; two of them go through the circuit as one complex ciphertext of twice the degree.
//
// The circuit has a secret of its own, uniform ternary, with its modulus checked against the same table. In its first step
// a ciphertext is under a sparse secret of Hamming weight 32, at a modulus of two primes (Bossuat, Troncoso-Pastoriza and
// Hubaux, ACNS 2022). The key that leads back to the model's ring is a sample under the model's secret, of half the degree,
// and has as many of the circuit's special primes as the table allows there. New checks every key.
package bootstrap

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/params"
	"privet/ckks/internal/wire"
)

// InputLevel is the level that ciphertexts are refreshed from.
const InputLevel = 1

// messageRatioBits is by how much the last modulus exceeds a value's scale when it enters the circuit. The circuit computes
// a sine where the identity belongs, so that values of up to v gain an error of v (2 pi v / 2^messageRatioBits)^2 / 6.
const messageRatioBits = 10

// Parameters are those of a circuit.
type Parameters struct {
	circuit bootstrapping.Parameters
	// sparse is the ring of the key that leads to the sparse secret, real of the one that leads to the model's own: both have
	// fewer primes than the circuit, because these secrets are easier to find.
	sparse, real ckks.Parameters
	keys         []Key
}

// New makes the circuit of a set for ciphertexts whose values repeat every 2^logSlots slots: the fewer, the cheaper.
func New(set params.Set, residual ckks.Parameters, logSlots int) (*Parameters, error) {
	logN, ratio := params.CircuitLogN, messageRatioBits
	logSlots = max(1, min(logSlots, logN-1))
	specials := make([]int, set.CircuitSpecials())
	for i := range specials {
		specials[i] = params.CircuitSpecialBits
	}
	made := &Parameters{}
	var err error
	made.circuit, err = bootstrapping.NewParametersFromLiteral(residual, bootstrapping.ParametersLiteral{
		LogN: &logN, LogP: specials, LogSlots: &logSlots, LogMessageRatio: &ratio,
		Xs: ring.Ternary{P: 2.0 / 3}, Xe: residual.Xe(),
	})
	if err != nil {
		return nil, err
	}
	own := made.circuit.BootstrappingParameters
	if err := params.CheckSecure(own.LogN(), own.LogQP()); err != nil {
		return nil, err
	}
	made.sparse, err = part(own, 0, 1)
	if err != nil {
		return nil, err
	}
	made.real, err = part(own, residual.MaxLevel(), set.RealSpecials())
	if err != nil {
		return nil, err
	}
	made.listKeys()
	return made, params.CheckPublished(made.Published())
}

// part is the circuit's ring with its primes up to a level and some of its special primes.
func part(own ckks.Parameters, level, specials int) (ckks.Parameters, error) {
	if specials < 1 {
		return ckks.Parameters{}, fmt.Errorf("the model's modulus leaves no room for a special prime of the bootstrapping circuit")
	}
	return ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: own.LogN(), Q: own.Q()[:level+1], P: own.P()[:specials], LogDefaultScale: own.LogDefaultScale(),
	})
}

// Key is one of the circuit's evaluation keys.
type Key struct {
	Kind  Kind
	Level int
	// Element is the automorphism of a Galois key.
	Element uint64
}

// Kind is what a key is for.
type Kind int

// Kinds of keys: between the model's and the circuit's ring, to and from the sparse secret, and those of the circuit.
const (
	ToComplex Kind = iota
	ToReal
	ToSparse
	FromSparse
	Relinearisation
	Galois
)

func (k Kind) String() string {
	return [...]string{
		"key to the circuit's ring", "key back to the model's ring", "key to the sparse secret", "key from the sparse secret",
		"relinearisation key", "rotation keys",
	}[k]
}

// Keys are all keys, in the order in which they are sent.
func (p *Parameters) Keys() []Key { return p.keys }

func (p *Parameters) listKeys() {
	c := p.circuit
	own := c.BootstrappingParameters
	p.keys = []Key{
		{Kind: ToComplex, Level: InputLevel}, {Kind: ToReal, Level: c.ResidualParameters.MaxLevel()},
		{Kind: ToSparse}, {Kind: FromSparse, Level: own.MaxLevel()},
		{Kind: Relinearisation, Level: c.Mod1ParametersLiteral.LevelQ},
	}
	high := map[uint64]bool{own.GaloisElementForComplexConjugation(): true}
	for _, element := range c.CoeffsToSlotsParameters.GaloisElements(own) {
		high[element] = true
	}
	low := map[uint64]bool{}
	for _, element := range c.SlotsToCoeffsParameters.GaloisElements(own) {
		low[element] = true
	}
	for _, element := range c.GaloisElements(own) {
		level := own.MaxLevel()
		if low[element] && !high[element] && !p.traces(element) {
			level = c.SlotsToCoeffsParameters.LevelQ
		}
		p.keys = append(p.keys, Key{Galois, level, element})
	}
}

// traces tells whether an automorphism belongs to the trace onto repeated slots, just after the modulus is raised.
func (p *Parameters) traces(element uint64) bool {
	own := p.circuit.BootstrappingParameters
	for i := p.circuit.LogMaxSlots(); i < own.LogN()-1; i++ {
		if own.GaloisElement(1<<i) == element {
			return true
		}
	}
	return false
}

// ring is that of a key.
func (p *Parameters) ring(key Key) ckks.Parameters {
	switch key.Kind {
	case ToSparse:
		return p.sparse
	case ToReal:
		return p.real
	}
	return p.circuit.BootstrappingParameters
}

// Published are the keys as an attacker sees them. A key that leads to a secret is a sample under that secret. The model's
// own has half of the circuit's degree: mapped into the circuit's ring it keeps its dimension.
func (p *Parameters) Published() []params.Published {
	var found []params.Published
	for _, key := range p.keys {
		ring := p.ring(key)
		made := params.Published{
			Name: "bootstrapping: " + key.Kind.String(), LogN: ring.LogN(),
			LogQ: logarithm(ring.Q()[:key.Level+1]), LogP: logarithm(ring.P()),
		}
		switch key.Kind {
		case ToReal:
			made.LogN = p.circuit.ResidualParameters.LogN()
		case ToSparse:
			made.Weight = p.SparseWeight()
		}
		found = append(found, made)
	}
	return found
}

func logarithm(primes []uint64) float64 {
	bits := 0.0
	for _, prime := range primes {
		bits += math.Log2(float64(prime))
	}
	return bits
}

// Size is a key's size as it is sent.
func (p *Parameters) Size(key Key) int { return wire.KeyBytes(p.ring(key), key.Level) }

// Memory is what a server takes for one client, in bytes: keys in full, the matrices of the circuit, and its ciphertexts.
func (p *Parameters) Memory() (keys, matrices, working int64) {
	own := p.circuit.BootstrappingParameters
	limb := int64(8) << own.LogN()
	specials := own.PCount()
	for _, key := range p.keys {
		specials := p.ring(key).PCount()
		digits := int64((key.Level + specials) / specials)
		keys += 2 * digits * int64(key.Level+1+specials) * limb
	}
	count := func(matrices, level int) int64 {
		total := int64(0)
		left := p.circuit.LogMaxSlots()
		for ; matrices > 0; matrices-- {
			merged := (left + matrices - 1) / matrices
			left -= merged
			total += int64(2<<merged-1) * int64(level+1+specials) * limb
		}
		return total
	}
	matrices = count(4, p.circuit.CoeffsToSlotsParameters.LevelQ) + count(3, p.circuit.SlotsToCoeffsParameters.LevelQ)
	// A decomposition has a digit's worth of limbs for each digit; the reduction modulo 1 keeps about sixteen powers.
	return keys, matrices, 96 * int64(own.MaxLevel()+1) * limb
}

// Rings are those of the circuit, of the key that leads to the sparse secret, and of the one that leads to the model's.
func (p *Parameters) Rings() (circuit, sparse, real ckks.Parameters) {
	return p.circuit.BootstrappingParameters, p.sparse, p.real
}

// SparseWeight is the Hamming weight of the sparse secret.
func (p *Parameters) SparseWeight() int { return p.circuit.EphemeralSecretWeight }
