package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/selvage/selvage/internal/problem"
)

// jsonMembers splits an object into its members without decoding their values.
func jsonMembers(body []byte) (map[string]json.RawMessage, error) {
	if members, ok := splitObject(body); ok {
		return members, nil
	}
	return decodeMembers(body)
}

// splitObject is jsonMembers for a body without faults. The members share its memory. ok is
// false for every other body.
func splitObject(body []byte) (members map[string]json.RawMessage, ok bool) {
	body = bytes.Trim(body, " \t\r\n")
	if len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		return nil, false
	}

	members = make(map[string]json.RawMessage)
	for at := nextToken(body, 1); body[at] != '}'; {
		end := valueEnd(body, at)
		var name string
		if json.Unmarshal(body[at:end], &name) != nil {
			return nil, false
		}

		at = nextToken(body, nextToken(body, end)+1) // behind the colon
		end = valueEnd(body, at)
		if _, twice := members[name]; twice || len(members) >= maxMembers {
			return nil, false
		}
		members[name] = body[at:end:end]

		if at = nextToken(body, end); body[at] == ',' {
			at = nextToken(body, at+1)
		}
	}
	return members, true
}

// nextToken returns the index of the first byte from at on that is not white space. There is one
// in valid JSON.
func nextToken(body []byte, at int) int {
	for body[at] == ' ' || body[at] == '\t' || body[at] == '\r' || body[at] == '\n' {
		at++
	}
	return at
}

// valueEnd returns the index behind the value that begins at the index at of valid JSON.
func valueEnd(body []byte, at int) int {
	depth := 0
	for ; ; at++ {
		switch body[at] {
		case '"':
			for at++; body[at] != '"'; at++ {
				if body[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--

		default:
			if depth > 0 {
				continue
			}
			for !bytes.ContainsRune([]byte(" \t\r\n,:]}"), rune(body[at])) {
				at++
			}
			return at
		}

		if depth == 0 {
			return at + 1
		}
	}
}

// decodeMembers is jsonMembers for any body. It costs more memory, and says what is wrong.
func decodeMembers(body []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, problem.New(problem.Malformed, "bad_request", "the body is not a JSON object")
	}

	members := make(map[string]json.RawMessage)
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, badJSON(err)
		}

		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, badJSON(err)
		}

		if _, twice := members[name]; twice {
			return nil, problem.New(problem.Malformed, "bad_request", "a member is repeated in the JSON object")
		}

		if len(members) >= maxMembers {
			return nil, problem.New(problem.Malformed, "bad_request",
				"the JSON object has more than %d members", maxMembers)
		}

		members[name] = raw
	}

	// The object must end, and nothing may follow it.
	if _, err := dec.Token(); err != nil {
		return nil, badJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, problem.New(problem.Malformed, "bad_request", "the body has data after the JSON object")
	}
	return members, nil
}

func badJSON(err error) error {
	return problem.New(problem.Malformed, "bad_request", "the body is not valid JSON: %v", err)
}
