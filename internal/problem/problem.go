// Package problem is the one error type of selvage.
//
// Rules return an [Error] for whatever a client may learn; each protocol has one
// function that turns it into its own JSON or page. An error without a problem in
// its chain is internal: it is logged with the request id and told as "internal".
package problem

import (
	"errors"
	"fmt"
	"time"
)

// A Kind says what sort of trouble an error is. It is itself an error, so that
// errors.Is(err, problem.NotFound) asks the question.
type Kind string

// The kinds. Protocols map them to statuses (docs/architecture.md, "Errors").
const (
	Malformed       Kind = "malformed request"      // not even readable: bad JSON, bad form
	Invalid         Kind = "invalid request"        // readable, but a value is wrong
	Unauthenticated Kind = "unauthenticated"        // no, wrong or insufficient credentials
	Forbidden       Kind = "forbidden"              // known caller, not allowed
	NotFound        Kind = "not found"              // no such thing, or another project's
	Conflict        Kind = "conflict"               // exists already, or changed meanwhile
	TooLarge        Kind = "too large"              // a body or a file over its limit
	Unsupported     Kind = "unsupported media type" // a content type nobody reads here
	NotAcceptable   Kind = "not acceptable"         // cannot be given in the format asked for
	RateLimited     Kind = "rate limited"           // too many; see RetryAfter
	Unavailable     Kind = "unavailable"            // a dependency is away; see RetryAfter
)

// Error makes a Kind an error.
func (k Kind) Error() string { return string(k) }

// An Error is a trouble that may be told to the client.
type Error struct {
	Kind       Kind
	Code       string        // stable, machine-readable: "missing_required_parameter", "invalid_grant"
	Param      string        // the parameter at fault, if one is
	Message    string        // one sentence for a developer; never a secret
	RetryAfter time.Duration // for RateLimited and Unavailable; 0 means unknown
}

// Error returns the message, with the parameter in front where there is one.
func (e *Error) Error() string {
	if e.Param != "" {
		return e.Param + ": " + e.Message
	}
	return e.Message
}

// Is reports whether target is the error's [Kind].
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// New makes an Error with a formatted message.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// NoSuch reports that a thing, such as "recording", does not exist.
func NoSuch(thing string) *Error {
	return &Error{Kind: NotFound, Code: "not_found", Message: thing + " not found"}
}

// Missing reports a required parameter that is absent or blank.
func Missing(param string) *Error {
	return &Error{Kind: Invalid, Code: "missing_required_parameter", Param: param, Message: param + " is required"}
}

// BadParam reports a parameter whose value cannot be used.
func BadParam(param, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Code: "invalid_parameter", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Taken reports a value that must be unique and is in use.
func Taken(param, message string) *Error {
	return &Error{Kind: Conflict, Code: "value_not_unique", Param: param, Message: message}
}

// NoCredentials reports a caller without valid credentials. The message never
// says which part was wrong.
func NoCredentials() *Error {
	return &Error{Kind: Unauthenticated, Code: "unauthorized",
		Message: "credentials are missing, wrong, expired or lack the scope"}
}

// All lists every [Error] in err's tree, in order: what errors.Join gathered.
func All(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, child := range e.Unwrap() {
			all = append(all, All(child)...)
		}
		return all
	}
	return All(errors.Unwrap(err))
}

// First returns the first [Error] in err's tree, or nil for an internal error.
func First(err error) *Error {
	if all := All(err); len(all) > 0 {
		return all[0]
	}
	return nil
}
