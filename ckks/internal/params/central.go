package params

// Central bootstrapping runs in the ring of complex numbers of twice the degree, whose modulus holds the levels that are
// left to the model, those of the circuit, and special primes (Bossuat, Mouchet, Troncoso-Pastoriza and Hubaux, EUROCRYPT
// 2021; Bossuat, Troncoso-Pastoriza and Hubaux, ACNS 2022).
const (
	// CentralLogN is the degree of a model's ring with central bootstrapping, CircuitLogN that of the circuit's.
	CentralLogN = CircuitLogN - 1
	CircuitLogN = 16
	// CircuitBits are four levels into the coefficients, eight of a reduction modulo 1, three back.
	CircuitBits = 4*56 + 8*60 + 3*39
	// CircuitLevels are the same in levels.
	CircuitLevels = 4 + 8 + 3
	// CircuitSpecialBits is the size of the circuit's special primes.
	CircuitSpecialBits = MaxPrimeBits
)

// ChooseCentral is the set for a model of a depth between refreshes, with the largest scale that is secure.
func ChooseCentral(depth int) (Set, bool) {
	for scale := MaxScaleBits; scale >= leastCentralBits; scale-- {
		set := Set{LogN: CentralLogN, Depth: depth, ScaleBits: scale, BaseBits: scale + HeadroomBits, BasePrimes: 1, Specials: 1, Central: true}
		set.SpecialBits = min(60, set.BaseBits+2)
		if set.LogQP() <= Budget(CentralLogN) && set.RealSpecials() >= 1 && set.CircuitSpecials() >= 4 {
			return set.withSpecials(), true
		}
	}
	return Set{}, false
}

// CircuitSpecials is the number of special primes of the circuit: as many as its modulus has room for, since with more of
// them keys are smaller.
func (s Set) CircuitSpecials() int {
	left := int(Budget(CircuitLogN)) - s.BaseBits - s.Depth*s.ScaleBits - CircuitBits
	return min(left/CircuitSpecialBits, (s.Depth+CircuitLevels)/2)
}

// RealSpecials is how many special primes of the circuit the key back to the model's ring has: the model's secret has half
// the circuit's degree, and so less room.
func (s Set) RealSpecials() int {
	left := int(Budget(CentralLogN) - s.LogQ(s.Depth))
	return min(left/CircuitSpecialBits, s.CircuitSpecials())
}

// CircuitKeyLimbs is the size of an evaluation key of the circuit in residues of one prime.
func (s Set) CircuitKeyLimbs() int {
	limbs, specials := s.Depth+1+CircuitLevels, s.CircuitSpecials()
	return 2 * ((limbs + specials - 1) / specials) * (limbs + specials)
}

// leastCentralBits is the smallest scale with central bootstrapping: its own error is that of about 17 bits, and models that
// need it are deep.
const leastCentralBits = 34
