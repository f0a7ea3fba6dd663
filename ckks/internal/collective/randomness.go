// Package collective is what the members of a cohort do together under a key that none of them has: the secret is the sum
// of their shares (Mouchet, Troncoso-Pastoriza, Bossuat and Hubaux, PETS 2021; scenario 3 of slytHErin).
//
// Members follow the protocol and any number of them but one may pool what they know. Each public polynomial that a
// protocol needs grows from a seed to which every member contributed, and no two protocols share one: a label that was
// used is refused.
package collective

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"privet/ckks/internal/wire"
)

// ContributionBytes is the size of what each member adds to the common seed.
const ContributionBytes = 32

// Common is the cohort's common randomness, the same at each member.
type Common struct {
	seed [sha256.Size]byte
	used map[string]bool
}

// NewCommon hashes the members' contributions, in the members' order.
func NewCommon(contributions [][]byte) (*Common, error) {
	digest := sha256.New()
	digest.Write(binary.LittleEndian.AppendUint64([]byte("privet ckks common"), uint64(len(contributions))))
	for member, contribution := range contributions {
		if len(contribution) != ContributionBytes {
			return nil, fmt.Errorf("member %d contributes %d bytes, not %d", member, len(contribution), ContributionBytes)
		}
		digest.Write(contribution)
	}
	c := &Common{used: map[string]bool{}}
	digest.Sum(c.seed[:0])
	return c, nil
}

// stream is the common random stream of a label, which must be new.
func (c *Common) stream(label string) (sampling.PRNG, error) {
	if c.used[label] {
		return nil, fmt.Errorf("the common polynomials of %q were used before", label)
	}
	c.used[label] = true
	return wire.Stream(c.seedOf(label))
}

func (c *Common) seedOf(label string) [sha256.Size]byte {
	return sha256.Sum256(append(c.seed[:], label...))
}
