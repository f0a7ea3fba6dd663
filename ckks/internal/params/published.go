package params

import "fmt"

// Published is one kind of RLWE samples that leave the owner of their secret: evaluation keys, public keys, shares of
// collective keys, ciphertexts. An attacker has them modulo all primes that they were made with, the special ones included,
// and attacks the secret in the dimension that it has, which can be smaller than the degree of the ring that it is used in.
type Published struct {
	Name string
	// LogN is the dimension of the secret.
	LogN int
	// Weight is the Hamming weight of a sparse ternary secret; 0 is a uniform ternary one, or a sum of several.
	Weight int
	// LogQ and LogP are the sizes in bits of the modulus and of the special modulus.
	LogQ, LogP float64
}

// Limit is the most bits that the whole modulus may have for the secret; 0 if no table has it.
func (p Published) Limit() float64 {
	if p.Weight != 0 {
		return maxSparseLogQP[sparse{p.LogN, p.Weight}]
	}
	return Budget(p.LogN)
}

// Secret describes the secret's distribution.
func (p Published) Secret() string {
	if p.Weight != 0 {
		return fmt.Sprintf("ternary of weight %d", p.Weight)
	}
	return "uniform ternary"
}

// CheckPublished refuses samples whose modulus is not secure in the dimension of their secret.
func CheckPublished(published []Published) error {
	for _, p := range published {
		err := CheckSecure(p.LogN, p.LogQ+p.LogP)
		if limit := p.Limit(); p.Weight != 0 {
			err = nil
			if p.LogQ+p.LogP > limit {
				err = fmt.Errorf("a modulus of %.1f bits is not secure at degree 2^%d with a secret of weight %d: at most %g bits are",
					p.LogQ+p.LogP, p.LogN, p.Weight, limit)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// LogQ is the size of the modulus at a level in bits, at most.
func (s Set) LogQ(level int) float64 {
	if level < s.Floor() {
		return float64(s.BaseBits * (level + 1) / s.BasePrimes)
	}
	return float64(s.BaseBits + (level-s.Floor())*s.ScaleBits)
}

// LogP is the size of the special modulus in bits, at most.
func (s Set) LogP() float64 { return float64(s.Specials * s.SpecialBits) }

// Key is an evaluation key of the set for ciphertexts up to a level.
func (s Set) Key(name string, level int) Published {
	return Published{Name: name, LogN: s.LogN, LogQ: s.LogQ(level), LogP: s.LogP()}
}

// Ciphertext is a ciphertext of the set at a level.
func (s Set) Ciphertext(name string, level int) Published {
	return Published{Name: name, LogN: s.LogN, LogQ: s.LogQ(level)}
}
