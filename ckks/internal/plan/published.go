package plan

import (
	"fmt"
	"maps"
	"slices"

	"privet/ckks/internal/params"
)

// Published are all RLWE samples that a plan's parties ever send: keys, shares of keys and ciphertexts, each with the
// largest modulus that it has.
func (p *Plan) Published() []params.Published {
	set, top := p.Set, p.Set.Depth
	found := []params.Published{set.Ciphertext("ciphertexts of inputs or model", top)}
	if p.Refresh.Members <= 1 {
		found = append(found, set.Ciphertext("encryption of zero", p.ZeroLevel()))
	}
	if p.RelinearisationLevel >= 0 {
		found = append(found, set.Key("relinearisation key", p.RelinearisationLevel))
	}
	for _, level := range slices.Compact(slices.Sorted(maps.Values(p.Rotations))) {
		found = append(found, set.Key(fmt.Sprintf("rotation keys, level %d", level), level))
	}
	switch {
	case p.Refresh.oblivious() || p.network.Known:
		// The client re-randomises what the owner of the key decrypts with a fresh ternary polynomial.
		found = append(found, set.Ciphertext("randomised results and refreshes", p.ZeroLevel()))
	case p.Refresh.Members > 1:
		// A member's share is a sample under its own share of the key, which is uniform ternary; sums are under the sum.
		// Shares of the relinearisation key are samples under a fresh ternary secret as well, shares of results are
		// encrypted under the client's key.
		found = append(found,
			set.Key("public key of the cohort and its shares", top),
			set.Key("relinearisation key's shares, both rounds", top),
			set.Key("public key of the client", top),
			set.Ciphertext("shares of refreshes", top),
			set.Ciphertext("shares of results", set.Floor()),
		)
	}
	if p.Circuit != nil {
		found = append(found, p.Circuit.Published()...)
	}
	return found
}
