package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// splitObject is a fast version of jsonMembers for valid objects. The members share the memory of
// body. For any other body, ok is false.
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

		at = nextToken(body, nextToken(body, end)+1) // the value after the colon
		end = valueEnd(body, at)
		if _, twice := members[name]; twice || len(members) >= maxMembers {
			return nil, false
		}
		members[name] = body[at:end:end]

		at = nextToken(body, end)
		if body[at] == ',' {
			at = nextToken(body, at+1)
		}
	}
	return members, true
}

// nextToken returns the index of the first byte in body[at:] that is not white space. The body must
// be valid JSON, and must have a byte at or after this index that is not white space.
func nextToken(body []byte, at int) int {
	for body[at] == ' ' || body[at] == '\t' || body[at] == '\r' || body[at] == '\n' {
		at++
	}
	return at
}

// valueEnd returns the index after the value that begins at body[at]. The body must be valid JSON.
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

// decodeMembers is a slower version of jsonMembers that uses more memory, but explains what is
// wrong with a body.
func decodeMembers(body []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, problem.New(problem.Malformed, "bad_request", "the body is not a JSON object")
	}

	members := make(map[string]json.RawMessage)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, badJSON(err)
		}
		name, ok := t.(string)
		if !ok {
			return nil, badJSON(fmt.Errorf("a member has the name %v", t))
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

	// The object must end here, with nothing after it.
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
