// Package bootstrap refreshes ciphertexts without their key: central bootstrapping, by Lattigo's circuit. A model's
// ciphertexts are in a ring of reals; two of them go through the circuit as one complex ciphertext of twice the degree.
//
// The circuit has a secret of its own, uniform ternary, with its modulus checked against the same table. In its first step
// a ciphertext is under a sparse secret of Hamming weight 32, at a modulus of two primes (Bossuat, Troncoso-Pastoriza and
// Hubaux, ACNS 2022, find more than 128 bits of security there).
package bootstrap

import (
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
	// sparse is the ring of the key that leads to the sparse secret.
	sparse ckks.Parameters
	keys   []Key
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
	made.sparse, err = ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: logN, Q: own.Q()[:1], P: own.P()[:1], LogDefaultScale: own.LogDefaultScale(),
	})
	if err != nil {
		return nil, err
	}
	made.listKeys()
	return made, nil
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
	if key.Kind == ToSparse {
		return p.sparse
	}
	return p.circuit.BootstrappingParameters
}

// Size is a key's size as it is sent.
func (p *Parameters) Size(key Key) int { return wire.KeyBytes(p.ring(key), key.Level) }

// Memory is what a server takes for one client, in bytes: keys in full, the matrices of the circuit, and its ciphertexts.
func (p *Parameters) Memory() (keys, matrices, working int64) {
	own := p.circuit.BootstrappingParameters
	limb := int64(8) << own.LogN()
	specials := own.PCount()
	for _, key := range p.keys {
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

// Rings are those of the circuit and of the key that leads to the sparse secret.
func (p *Parameters) Rings() (circuit, sparse ckks.Parameters) {
	return p.circuit.BootstrappingParameters, p.sparse
}

// SparseWeight is the Hamming weight of the sparse secret.
func (p *Parameters) SparseWeight() int { return p.circuit.EphemeralSecretWeight }
