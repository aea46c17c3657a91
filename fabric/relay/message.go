package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/selvage/selvage/internal/problem"
)

// A message is a request or a response (JSON-RPC 2.0, sections 4 and 5). A response has no
// method.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// The error codes. JSON-RPC defines the codes below -32099. SDKs handle authenticationFailed and
// validationFailed specially.
const (
	parseError           = -32700
	invalidRequest       = -32600
	methodNotFound       = -32601
	invalidParams        = -32602
	internalError        = -32603
	validationFailed     = -32003
	authenticationFailed = -32002
	refused              = -32000 // temporary: a limit was exceeded, or a dependency is unavailable
)

// A fault is an error in the form that a client receives.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *fault) Error() string { return f.Message }

// notValid returns the error after which SDKs forget their former sockets and connect again. SDKs
// recognize the exact message.
func notValid() error { return &fault{validationFailed, "Requester validation failed"} }

func badParams(format string, args ...any) error {
	return &fault{invalidParams, fmt.Sprintf(format, args...)}
}

// faultOf returns the part of err that a client may see. ok is false for an internal error.
func faultOf(err error) (f *fault, ok bool) {
	if errors.As(err, &f) {
		return f, true
	}

	p := problem.First(err)
	if p == nil {
		return &fault{internalError, "internal error"}, false
	}

	switch p.Kind {
	case problem.Unauthenticated:
		return &fault{authenticationFailed,
			"Authentication failed: the token is wrong, has expired or was revoked"}, true
	case problem.Malformed, problem.Invalid:
		return &fault{invalidParams, p.Message}, true
	}

	return &fault{refused, p.Message}, true
}

// label returns the code as text for Observe.
func (f *fault) label() string { return strconv.Itoa(f.Code) }

// parse parses a message. Any error is a fault.
func parse(text []byte) (m message, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return message{}, &fault{parseError, "the message is not JSON"}
		}
		return message{}, &fault{invalidRequest, "the message is not a JSON-RPC request"}
	}
	if m.Version != "2.0" || !isID(m.ID) {
		return message{}, &fault{invalidRequest, "the message is not JSON-RPC 2.0"}
	}
	return m, nil
}

// isID reports whether id is a valid request id: a string, a number, null or nothing.
func isID(id json.RawMessage) bool {
	return len(id) == 0 || string(id) == "null" || id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9'
}

// decodeParams decodes the parameters of a request into v.
func decodeParams(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return badParams("params.%s has the wrong type", wrong.Field)
		}
		return badParams("params must be an object")
	}
	return nil
}

// request encodes a request to the client.
func request(id, method string, params any) []byte {
	return encode(struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{Version: "2.0", ID: id, Method: method, Params: params})
}

// response encodes a response. The response contains f or, if f is nil, the result.
func response(id json.RawMessage, result any, f *fault) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	if f != nil {
		result = nil
	}
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *fault          `json:"error,omitempty"`
	}{Version: "2.0", ID: id, Result: result, Error: f})
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // our types can always be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
