package session

import (
	"fmt"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/program"
	"privet/ckks/internal/secret"
)

// asker is a session of a party that has data, with a server that has the weights.
type asker struct {
	*arranged
	channel *channel.Channel
}

// Client is a session of a party that has data, which it encrypts.
type Client struct {
	*asker
	key *secret.Key
}

// Open greets the server and gets its program; with `hash`, that very program.
func Open(c *channel.Channel, hash string) (*Client, error) {
	opened, err := open(c, hash, EncryptedData)
	if err != nil {
		return nil, err
	}
	return &Client{asker: opened}, nil
}

// RefuseLight tells the server that its light flooding is not accepted, and gives the error for a person, who may do something
// `instead` of looking for a server with statistical flooding.
func (c *Client) RefuseLight(instead string) error {
	GiveUp(c.channel, &Refusal{Reason: channel.NotAllowed, Text: "the client asks for statistical flooding"})
	return &channel.Error{
		Family: channel.FamilyRefused,
		Text:   fmt.Sprintf("this server floods its results lightly: %s, or look for a server with statistical flooding", instead),
	}
}

func open(c *channel.Channel, hash, scenario string) (*asker, error) {
	if err := Greet(c); err != nil {
		return nil, err
	}
	if err := sendJSON(c, request{Request: "describe", Scenario: scenario}); err != nil {
		return nil, err
	}
	var terms Terms
	if err := receiveJSON(c, &terms); err != nil {
		return nil, err
	}
	if terms.Scenario != scenario {
		return nil, channel.Misbehaviour(fmt.Sprintf("the server offers scenario %s, not %s", terms.Scenario, scenario))
	}
	public, err := c.ReceiveUpTo(program.MaxBytes)
	if err != nil {
		return nil, err
	}
	pinned, err := arrangePinned(public, terms, hash)
	if err != nil {
		return nil, err
	}
	return &asker{pinned, c}, nil
}

// arrangePinned arranges a program that must have the hash, unless that is empty. Another is refused before anything is made of
// it.
func arrangePinned(public []byte, terms Terms, hash string) (*arranged, error) {
	if offered := program.HashOf(public); hash != "" && hash != offered {
		return nil, channel.Misbehaviour(fmt.Sprintf("the server offers program %s, not %s", offered, hash))
	}
	return arrange(public, terms)
}

// Prepare makes a key and sends what the server computes with: the offline phase. It serves any number of inferences.
func (c *Client) Prepare() (Cost, error) {
	meter := Begin(c.channel)
	key, err := secret.New(c.Params)
	if err != nil {
		return Cost{}, err
	}
	if err := c.ask(request{Request: "keys", Parameters: &c.Plan.Set, Batch: c.Plan.Batch}); err != nil {
		return Cost{}, err
	}
	if err := sendKeys(c.channel, key, c.Plan); err != nil {
		return Cost{}, err
	}
	if err := acknowledged(c.channel); err != nil {
		return Cost{}, err
	}
	c.key = key
	return meter.End(), nil
}

// Infer encrypts inputs, one row for each sample of each input, and gives the outputs alike: the online phase.
func (c *Client) Infer(inputs [][][]float64) ([][][]float64, Cost, error) {
	meter := Begin(c.channel)
	if c.key == nil {
		return nil, Cost{}, fmt.Errorf("keys come before data: call Prepare first")
	}
	if err := c.Check(inputs); err != nil {
		return nil, Cost{}, err
	}
	if err := c.request(request{Request: "infer"}); err != nil {
		return nil, Cost{}, err
	}
	var results Results
	err := c.Groups(func(first, last int) error {
		if err := c.send(inputs, first, last); err != nil {
			return err
		}
		return c.Decrypt(c.channel, c.key, &results, last-first)
	})
	if err != nil {
		return nil, Cost{}, err
	}
	outputs, err := results.Outputs()
	return outputs, meter.End(), err
}

// Close ends the session. All results are here, so a peer that has already ended it is no error.
func (a *asker) Close() error {
	_ = sendJSON(a.channel, request{Request: "bye"})
	return a.channel.Close()
}

// request asks for something about the program.
func (a *asker) request(what request) error {
	what.Program = a.Program.Hash
	return sendJSON(a.channel, what)
}

// ask requests something that the server may refuse.
func (a *asker) ask(what request) error {
	if err := a.request(what); err != nil {
		return err
	}
	return acknowledged(a.channel)
}

func acknowledged(c *channel.Channel) error {
	_, err := c.Receive(1)
	return err
}

func (c *Client) send(inputs [][][]float64, first, last int) error {
	return c.Fill(inputs, first, last, func(_ int, slots []float64) error {
		return c.channel.Deliver(c.key.Encrypt(slots))
	})
}
