// Package params chooses CKKS parameters and refuses insecure ones.
package params

import "fmt"

// maxLogQP bounds log2 of the whole modulus, special primes included, for 128 bits of security against classical
// attacks with uniform ternary secrets and errors of standard deviation 3.19: Bossuat and others, "Security Guidelines
// for Implementing Homomorphic Encryption" (2024), table 5.2.
var maxLogQP = map[int]float64{
	10: 26, 11: 53, 12: 106, 13: 214, 14: 430, 15: 868, 16: 1747,
}

// maxSparseLogQP is the same for ternary secrets of a small Hamming weight, which only keys of central bootstrapping have.
// The estimator of scripts/lattice.py, hybrid attacks included, finds 128 bits there (docs/reference/security-parameters.md); the
// weight and the idea of such a key for one step alone are from Bossuat, Troncoso-Pastoriza and Hubaux (ACNS 2022).
var maxSparseLogQP = map[sparse]float64{{logN: 16, weight: 32}: 121}

type sparse struct{ logN, weight int }

// Limits of the ring's degree.
const (
	MinLogN = 12
	MaxLogN = 16
)

// Budget is the most bits that a modulus may have at a ring degree of 2^logN.
func Budget(logN int) float64 { return maxLogQP[logN] }

// CheckSecure refuses a modulus of logQP bits at a ring degree of 2^logN that the table does not allow.
func CheckSecure(logN int, logQP float64) error {
	limit, known := maxLogQP[logN]
	if !known || logN < MinLogN {
		return fmt.Errorf("a ring of degree 2^%d is not among those allowed, 2^%d to 2^%d", logN, MinLogN, MaxLogN)
	}
	if logQP > limit {
		return fmt.Errorf("a modulus of %.1f bits is not secure at degree 2^%d: at most %g bits give 128 bits of security",
			logQP, logN, limit)
	}
	return nil
}
