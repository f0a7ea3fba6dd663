package cohort

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/wire"
)

// Members and the client have connections to the coordinator alone. What they must know of each other goes through it in
// statements that are signed with the keys of their certificates, which it cannot forge.
const (
	purposeSums   = "cohort: sums that a member got"
	purposeShares = "cohort: projection of a member's shares"
	purposeKey    = "cohort: public keys that a member checked"
	purposeClient = "cohort: public key of the client"
	digestBytes   = sha256.Size
)

// sumsGot is what a member says of the sums that it got. The nonces of all members make the challenge.
type sumsGot struct {
	Program string `json:"program"`
	Members int    `json:"members"`
	Digest  []byte `json:"digest"`
	Nonce   []byte `json:"nonce"`
}

// sharesProjected is what a member says of its own shares under a challenge.
type sharesProjected struct {
	Challenge  []byte `json:"challenge"`
	Projection []byte `json:"projection"`
}

// keysChecked names the public keys of the cohort and of the client that it works for: a client's statement about the cohort's that
// it got and its own, and then a member's that results of this cohort go out under that one alone.
type keysChecked struct {
	Program string `json:"program"`
	Key     []byte `json:"key"`
	Client  []byte `json:"client"`
}

func (s *Setup) keysChecked(cohort, client *rlwe.PublicKey) keysChecked {
	key, own := collective.PublicKeyDigest(s.Params, cohort), collective.PublicKeyDigest(s.Params, client)
	return keysChecked{s.Program.Hash, key[:], own[:]}
}

// says tells whether a message names the same.
func (k keysChecked) says(message []byte) bool {
	var said keysChecked
	return json.Unmarshal(message, &said) == nil &&
		said.Program == k.Program && bytes.Equal(said.Key, k.Key) && bytes.Equal(said.Client, k.Client)
}

// compareSums has a member compare with all others the sums that the coordinator sent. Only then are they used.
func compareSums(c *channel.Channel, own *channel.Credentials, s *Setup, index int, m *collective.Member) error {
	public, err := c.Receive(wire.QPBytes(s.Params, 1))
	if err != nil {
		return err
	}
	first, err := c.Receive(collective.NewCoordinator(s.Params, nil, s.Members).Sizes().First)
	if err != nil {
		return err
	}
	if err := m.TakeSums(public, first); err != nil {
		return err
	}
	digest, nonce := m.SumsDigest(), make([]byte, digestBytes)
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	said, err := exchange(c, own, s, index, purposeSums, sumsGot{s.Program.Hash, s.Members, digest[:], nonce})
	if err != nil {
		return err
	}
	hash := sha256.New()
	for member, message := range said {
		var got sumsGot
		if err := json.Unmarshal(message, &got); err != nil || len(got.Nonce) != digestBytes {
			return channel.Misbehaviour(fmt.Sprintf("member %d's statement on the sums has the wrong form", member))
		}
		if got.Program != s.Program.Hash || got.Members != s.Members || !bytes.Equal(got.Digest, digest[:]) {
			return channel.Misbehaviour(fmt.Sprintf("the coordinator sent member %d other sums of shares than this member", member))
		}
		if member == index && !bytes.Equal(got.Nonce, nonce) {
			return channel.Misbehaviour("the coordinator repeats an earlier statement of this member")
		}
		hash.Write(got.Nonce)
	}
	challenge := [sha256.Size]byte(hash.Sum(nil))
	projection, err := m.ProjectShares(challenge)
	if err != nil {
		return err
	}
	if said, err = exchange(c, own, s, index, purposeShares, sharesProjected{challenge[:], projection}); err != nil {
		return err
	}
	var projections [][]byte
	for member, message := range said {
		var got sharesProjected
		if err := json.Unmarshal(message, &got); err != nil || !bytes.Equal(got.Challenge, challenge[:]) {
			return channel.Misbehaviour(fmt.Sprintf("member %d's statement on its shares is not about this run", member))
		}
		projections = append(projections, got.Projection)
	}
	if err := m.CheckSums(challenge, projections); err != nil {
		return channel.Misbehaviour(err.Error())
	}
	return nil
}

// exchange sends all members a statement, through the coordinator, and gives what each of them sent, in the order of members.
func exchange(c *channel.Channel, own *channel.Credentials, s *Setup, index int, purpose string, content any) ([][]byte, error) {
	message, err := state(c, own, purpose, content)
	if err != nil {
		return nil, err
	}
	said, err := receiveStatements(c, own, s, purpose)
	if err == nil && !bytes.Equal(said[index], message) {
		err = channel.Misbehaviour("the coordinator changed what this member said to the others")
	}
	return said, err
}

// state sends a party's signed statement, and gives what it says.
func state(c *channel.Channel, own *channel.Credentials, purpose string, content any) ([]byte, error) {
	message, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return message, c.Deliver(own.Sign(purpose, message))
}

// receiveStatements reads one statement of each member, in order.
func receiveStatements(c *channel.Channel, own *channel.Credentials, s *Setup, purpose string) ([][]byte, error) {
	data, err := c.ReceiveUpTo(2 * s.Members * channel.MaxStatement)
	if err != nil {
		return nil, err
	}
	var statements [][]byte
	if json.Unmarshal(data, &statements) != nil || len(statements) != s.Members {
		return nil, channel.Misbehaviour("the statements of members have the wrong form")
	}
	said := make([][]byte, s.Members)
	for member, statement := range statements {
		message, signer, err := own.Verify(purpose, statement)
		if err != nil {
			return nil, err
		}
		if signer.Name != memberName(member) {
			return nil, channel.Misbehaviour(fmt.Sprintf("a statement of member %d is signed by %q", member, signer.Name))
		}
		said[member] = message
	}
	return said, nil
}

func memberName(member int) string { return fmt.Sprintf("privet member %d", member) }

// vouch tells the client, which the coordinator passes it on to, which public keys this member has checked.
func vouch(c *channel.Channel, own *channel.Credentials, s *Setup, m *collective.Member, client *rlwe.PublicKey) error {
	key, err := m.CohortKey()
	if err != nil {
		return err
	}
	_, err = state(c, own, purposeKey, s.keysChecked(key, client))
	return err
}

// checkVouchers has a client check that all members vouch for the public key that the coordinator sent, and that they hand out
// results under this client's alone: another's key would open what this one encrypts.
func checkVouchers(c *channel.Channel, own *channel.Credentials, s *Setup, key, client *rlwe.PublicKey) error {
	said, err := receiveStatements(c, own, s, purposeKey)
	if err != nil {
		return err
	}
	expected := s.keysChecked(key, client)
	for member, message := range said {
		if !expected.says(message) {
			return channel.Misbehaviour(fmt.Sprintf("member %d does not vouch for the public key that the coordinator sent, or works for another client", member))
		}
	}
	return nil
}

// takeClient has a member take the public key of this run's client, and check that it is not the coordinator's own.
func takeClient(c *channel.Channel, own *channel.Credentials, s *Setup, m *collective.Member) (*rlwe.PublicKey, error) {
	client, err := receivePublicKey(c, s.Params)
	if err != nil {
		return nil, err
	}
	signed, err := c.ReceiveUpTo(channel.MaxStatement)
	if err != nil {
		return nil, err
	}
	cohort, err := m.CohortKey()
	if err != nil {
		return nil, err
	}
	return client, checkSigned(signed, own, s, c.Peer(), cohort, client)
}

// checkSigned checks a client's statement about its key; the coordinator is known by its fingerprint.
func checkSigned(data []byte, own *channel.Credentials, s *Setup, coordinator string, cohort, client *rlwe.PublicKey) error {
	message, signer, err := own.Verify(purposeClient, data)
	if err != nil {
		return err
	}
	for member := range s.Members {
		if signer.Name == memberName(member) {
			return channel.Misbehaviour(fmt.Sprintf("member %d signed the client's public key", member))
		}
	}
	if signer.Fingerprint == coordinator {
		return channel.Misbehaviour("the coordinator signed the client's public key: it would read the results itself")
	}
	if !s.keysChecked(cohort, client).says(message) {
		return channel.Misbehaviour("the client's public key is not the one that the client signed for this run")
	}
	return nil
}
