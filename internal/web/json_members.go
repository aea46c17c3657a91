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
// body. If body is not a valid object, ok is false.
func splitObject(body []byte) (members map[string]json.RawMessage, ok bool) {
	body = bytes.TrimLeft(body, jsonSpace)
	if len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		return nil, false
	}

	members = make(map[string]json.RawMessage)
	rest := bytes.TrimLeft(body[1:], jsonSpace)
	for rest[0] != '}' {
		var quoted, value []byte
		quoted, rest = cutValue(rest)
		value, rest = cutValue(rest[1:]) // after the colon
		if rest[0] == ',' {
			rest = bytes.TrimLeft(rest[1:], jsonSpace)
		}

		var name string
		if json.Unmarshal(quoted, &name) != nil {
			return nil, false
		}
		if _, repeated := members[name]; repeated || len(members) >= maxMembers {
			return nil, false
		}
		members[name] = value
	}
	return members, true
}

// jsonSpace is the white space of JSON.
const jsonSpace = " \t\r\n"

// cutValue returns the first value in text, and the text after the value. It skips white space before and
// after the value. text must be part of a valid object.
func cutValue(text []byte) (value, after []byte) {
	text = bytes.TrimLeft(text, jsonSpace)
	n := valueLength(text)
	return text[:n:n], bytes.TrimLeft(text[n:], jsonSpace)
}

// valueLength returns the length of the value at the beginning of text, which must be part of a
// valid object.
func valueLength(text []byte) int {
	switch text[0] {
	case '"':
		return stringLength(text)
	case '{', '[':
		return compositeLength(text)
	default: // a number, true, false or null
		return bytes.IndexAny(text, jsonSpace+",}")
	}
}

// stringLength is valueLength for a string.
func stringLength(text []byte) int {
	i := 1
	for text[i] != '"' {
		if text[i] == '\\' {
			i++ // the next byte is escaped
		}
		i++
	}
	return i + 1
}

// compositeLength is valueLength for an object or an array.
func compositeLength(text []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch text[i] {
		case '"':
			i += stringLength(text[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// decodeMembers is a version of jsonMembers that is slower and uses more memory than splitObject, but
// explains what is wrong with a body.
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
