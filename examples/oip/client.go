// Asks a gateway for a prediction with Go's own library.
//
// Usage: go run client.go URL MODEL < numbers
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type tensor struct {
	Name     string    `json:"name"`
	Datatype string    `json:"datatype"`
	Shape    []int     `json:"shape"`
	Data     []float64 `json:"data,omitempty"`
}

type message struct {
	Inputs  []tensor `json:"inputs,omitempty"`
	Outputs []tensor `json:"outputs,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func read(answer *http.Response, err error) message {
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	var found message
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		log.Fatal(err)
	}
	if found.Error != "" {
		log.Fatal(found.Error)
	}
	return found
}

func main() {
	place := os.Args[1] + "/v2/models/" + os.Args[2]
	given := read(http.Get(place)).Inputs[0]
	for axis, size := range given.Shape {
		given.Shape[axis] = max(size, 1) // -1 is an axis of any length
	}
	for {
		var value float64
		if _, err := fmt.Scan(&value); err == io.EOF {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		given.Data = append(given.Data, value)
	}
	body, err := json.Marshal(message{Inputs: []tensor{given}})
	if err != nil {
		log.Fatal(err)
	}
	answer := read(http.Post(place+"/infer", "application/json", bytes.NewReader(body)))
	for _, value := range answer.Outputs[0].Data {
		fmt.Print(value, " ")
	}
	fmt.Println()
}
