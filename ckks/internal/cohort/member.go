package cohort

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
)

// Member takes part in one inference as member `index`. Member 0 has the weights (nil at all others), which it encrypts
// under the cohort's key; it alone knows, and gives, by how many bits flooding protects the key. It waits for the inference to
// begin, when `begun` is called. prepared is called when
// keys, and the model unless it goes layer by layer, are sent. `own` is the certificate that the member came with: it signs
// what it tells the other members.
func Member(c *channel.Channel, own *channel.Credentials, s *Setup, index int, weights *program.Weights, begun, prepared func()) (bits float64, err error) {
	if err := introduce(c, s.hello(roleMember, index)); err != nil {
		return 0, err
	}
	m, err := join(c, s)
	if err != nil {
		return 0, err
	}
	begun()
	client, err := makeKeys(c, own, s, index, m)
	if err != nil {
		return 0, err
	}
	next := nothing
	if weights != nil {
		if next, bits, err = sendModel(c, s, m, weights); err != nil {
			return bits, err
		}
	}
	prepared()
	if err := evaluating(c, s, m, next); err != nil {
		return bits, err
	}
	return bits, switchResults(c, s, m, client)
}

func introduce(c *channel.Channel, h hello) error {
	if err := session.Greet(c); err != nil {
		return err
	}
	return c.Deliver(json.Marshal(h))
}

// join adds to the common randomness and makes a share of the key.
func join(c *channel.Channel, s *Setup) (*collective.Member, error) {
	own := make([]byte, collective.ContributionBytes)
	if _, err := rand.Read(own); err != nil {
		return nil, err
	}
	if err := c.Send(own); err != nil {
		return nil, err
	}
	// The first message comes once all members wait and a client is there, however long that takes.
	all, err := c.ReceiveWhenever(s.Members * collective.ContributionBytes)
	if err != nil {
		return nil, err
	}
	var contributions [][]byte
	for len(all) > 0 {
		contributions, all = append(contributions, all[:collective.ContributionBytes]), all[collective.ContributionBytes:]
	}
	if !slices.ContainsFunc(contributions, func(c []byte) bool { return bytes.Equal(c, own) }) {
		return nil, channel.Misbehaviour("the coordinator left this member's part out of the common randomness")
	}
	common, err := collective.NewCommon(contributions)
	if err != nil {
		return nil, err
	}
	return collective.NewMember(s.Params, common, s.Members, len(s.results()))
}

// makeKeys is a member's part in all keys. It gives the client's, the only one that results go out under.
func makeKeys(c *channel.Channel, own *channel.Credentials, s *Setup, index int, m *collective.Member) (*rlwe.PublicKey, error) {
	if err := c.Deliver(m.PublicKey()); err != nil {
		return nil, err
	}
	if err := c.Deliver(m.RelinearisationFirst()); err != nil {
		return nil, err
	}
	if err := compareSums(c, own, s, index, m); err != nil {
		return nil, err
	}
	client, err := takeClient(c, own, s, m)
	if err != nil {
		return nil, err
	}
	if err := vouch(c, own, s, m, client); err != nil {
		return nil, err
	}
	if err := c.Deliver(m.RelinearisationSecond()); err != nil {
		return nil, err
	}
	for _, slots := range s.rotations() {
		if err := c.Deliver(m.Rotation(slots, s.Plan.Rotations[slots])); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// switchResults helps with each result: one ciphertext after the other, for the client's key.
func switchResults(c *channel.Channel, s *Setup, m *collective.Member, client *rlwe.PublicKey) error {
	for _, output := range s.results() {
		ct, err := session.ReceiveResult(c, "a result", s.Params, s.Plan.Set.Floor())
		if err != nil {
			return err
		}
		noise := flood.New(s.Plan.FloodDeviation(output), s.Plan.Period(output))
		if err := c.Deliver(m.Switch(client, ct, noise)); err != nil {
			return err
		}
	}
	return nil
}
