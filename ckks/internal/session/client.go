package session

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

// Client is a session of a party that has data.
type Client struct {
	// Program is what the server offers, Plan how it will be evaluated: the client's own plan of the public half.
	Program *program.Program
	Plan    *plan.Plan
	Network *network.Network

	channel *channel.Channel
	params  ckks.Parameters
	key     *secret.Key
}

// Open greets the server and gets the program: `model` if the server has several; with `hash`, that very program.
func Open(c *channel.Channel, model, hash string) (*Client, error) {
	if err := Greet(c); err != nil {
		return nil, err
	}
	if err := ask(c, request{Request: "describe", Model: model}); err != nil {
		return nil, err
	}
	public, err := c.ReceiveUpTo(program.MaxBytes)
	if err != nil {
		return nil, err
	}
	client := &Client{channel: c}
	if client.Program, err = program.Parse(public); err != nil {
		return nil, channel.Misbehaviour(err.Error())
	}
	if hash != "" && hash != client.Program.Hash {
		return nil, channel.Misbehaviour(fmt.Sprintf("the server offers program %s, not %s", client.Program.Hash, hash))
	}
	if client.Network, err = network.Build(client.Program, nil); err != nil {
		return nil, err
	}
	if client.Plan, err = plan.New(client.Network); err != nil {
		return nil, err
	}
	client.params, err = client.Plan.Set.Build()
	return client, err
}

// Prepare makes a key and sends what the server computes with: the offline phase. It serves any number of inferences.
func (c *Client) Prepare() (Cost, error) {
	meter := Begin(c.channel)
	key, err := secret.New(c.params)
	if err != nil {
		return Cost{}, err
	}
	err = ask(c.channel, request{
		Request: "keys", Program: c.Program.Hash, Parameters: &c.Plan.Set, Batch: c.Plan.Batch,
	})
	if err != nil {
		return Cost{}, err
	}
	if err := c.acknowledged(); err != nil {
		return Cost{}, err
	}
	if err := sendKeys(c.channel, key, c.Plan); err != nil {
		return Cost{}, err
	}
	if err := c.acknowledged(); err != nil {
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
	if err := c.check(inputs); err != nil {
		return nil, Cost{}, err
	}
	if err := ask(c.channel, request{Request: "infer", Program: c.Program.Hash}); err != nil {
		return nil, Cost{}, err
	}
	var outputs [][][]float64
	for group := range c.Plan.Groups {
		first := group * c.Plan.Batch
		last := min(first+c.Plan.Batch, c.Program.Batch)
		if err := c.send(inputs, first, last); err != nil {
			return nil, Cost{}, err
		}
		if err := c.receive(&outputs, last-first); err != nil {
			return nil, Cost{}, err
		}
	}
	return outputs, meter.End(), nil
}

// Close says goodbye.
func (c *Client) Close() error {
	if err := ask(c.channel, request{Request: "bye"}); err != nil {
		return err
	}
	return c.channel.Close()
}

func (c *Client) acknowledged() error {
	_, err := c.channel.Receive(1)
	return err
}

// check refuses inputs that the program was not compiled for.
func (c *Client) check(inputs [][][]float64) error {
	if len(inputs) != len(c.Program.Inputs) {
		return fmt.Errorf("%d inputs given, the model has %d", len(inputs), len(c.Program.Inputs))
	}
	for i, input := range c.Program.Inputs {
		size := c.Network.Nodes[i].Size
		if len(inputs[i]) != c.Program.Batch {
			return fmt.Errorf("input %s has %d samples, not %d", input.Name, len(inputs[i]), c.Program.Batch)
		}
		for _, sample := range inputs[i] {
			if len(sample) != size {
				return fmt.Errorf("input %s has %d elements, not %d", input.Name, len(sample), size)
			}
			for _, value := range sample {
				if !(math.Abs(value) <= input.Magnitude) {
					return fmt.Errorf("input %s holds %v, and the program was compiled for magnitudes up to %v", input.Name, value, input.Magnitude)
				}
			}
		}
	}
	return nil
}

func (c *Client) send(inputs [][][]float64, first, last int) error {
	for i := range inputs {
		for _, slots := range c.Plan.Layouts[i].Fill(inputs[i][first:last], c.Plan.Batch) {
			data, err := c.key.Encrypt(slots)
			if err != nil {
				return err
			}
			if err := c.channel.Send(data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) receive(outputs *[][][]float64, samples int) error {
	output := 0
	for index, node := range c.Network.Nodes {
		if node.Kind != network.Output {
			continue
		}
		layout := c.Plan.Layouts[index]
		slots := make([][]float64, layout.Ciphertexts)
		for i := range slots {
			data, err := c.channel.Receive(wire.ResultBytes(c.params, c.Plan.Set.Floor()))
			if err != nil {
				return err
			}
			ct, err := wire.ReadResult(data, c.params, c.Plan.Set.Floor())
			if err != nil {
				return channel.Misbehaviour("a result: " + err.Error())
			}
			if slots[i], err = c.key.Decrypt(ct, c.Plan.Period(index)); err != nil {
				return err
			}
		}
		if output == len(*outputs) {
			*outputs = append(*outputs, nil)
		}
		(*outputs)[output] = append((*outputs)[output], layout.Take(slots, c.Plan.Batch, samples)...)
		output++
	}
	return nil
}
