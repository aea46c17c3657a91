// Package problem defines the type of the errors that clients may see.
//
// Functions return an [Error] for each failure that a client may learn about. Each protocol has one
// function that converts an Error to the protocol's own JSON or page. An error whose tree contains no
// [Error] is internal: it is logged with the request id, and clients see only "internal".
package problem

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Kind is the category of an error. A Kind is itself an error, so that
// errors.Is(err, problem.NotFound) works.
type Kind string

// The kinds of errors. Protocols map them to statuses (docs/architecture.md, "Errors").
const (
	Malformed       Kind = "malformed request"      // cannot be parsed: bad JSON, bad form
	Invalid         Kind = "invalid request"        // can be parsed, but a value is wrong
	Unauthenticated Kind = "unauthenticated"        // missing, wrong or insufficient credentials
	Forbidden       Kind = "forbidden"              // the caller is known, but lacks permission
	NotFound        Kind = "not found"              // unknown, or belongs to another project
	Conflict        Kind = "conflict"               // already exists, or was changed in the meantime
	TooLarge        Kind = "too large"              // a body or a file over its limit
	Unsupported     Kind = "unsupported media type" // a content type that is not accepted
	NotAcceptable   Kind = "not acceptable"         // not available in the requested format
	RateLimited     Kind = "rate limited"           // too many requests; see RetryAfter
	Unavailable     Kind = "unavailable"            // a dependency is down; see RetryAfter
)

// Error returns the name of the kind.
func (k Kind) Error() string { return string(k) }

// An Error is an error that clients may see.
type Error struct {
	Kind       Kind
	Code       string        // stable, machine-readable, such as "invalid_grant"
	Param      string        // the faulty parameter, or ""
	Message    string        // one sentence for developers; never a secret
	RetryAfter time.Duration // set for RateLimited and Unavailable; 0 means unknown
	Cause      string        // the reason for the server's log; clients see it only if Told is set; may be ""
	Told       bool          // clients see the cause, in the header WWW-Authenticate
}

// Error returns the message, preceded by the parameter if there is one.
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

// Because sets the cause of e and returns e. It is for errors whose message must not tell clients
// why their request was refused.
func (e *Error) Because(cause string) *Error {
	e.Cause = cause
	return e
}

// Telling sets the cause of e and shows it to the client, in the header WWW-Authenticate. It returns e.
// The cause must contain no secret, and nothing that only the owner of the credentials may know.
func (e *Error) Telling(cause string) *Error {
	e.Told = true
	return e.Because(cause)
}

// Explain describes err for a log. For each [Error] in err, it returns the cause, or the message if
// there is no cause.
func Explain(err error) string {
	var all []string
	for _, p := range All(err) {
		all = append(all, cmp.Or(p.Cause, p.Error()))
	}
	return strings.Join(all, "; ")
}

// New returns an Error with a formatted message.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// NoSuch returns the error for an unknown object. thing is the kind of object, such as "recording".
func NoSuch(thing string) *Error {
	return &Error{Kind: NotFound, Code: "not_found", Message: thing + " not found"}
}

// IgnoreNotFound returns nil if err is of the kind NotFound, and otherwise err.
func IgnoreNotFound(err error) error {
	if errors.Is(err, NotFound) {
		return nil
	}
	return err
}

// Missing returns the error for a required parameter that is absent or blank.
func Missing(param string) *Error {
	return &Error{Kind: Invalid, Code: "missing_required_parameter", Param: param, Message: param + " is required"}
}

// BadParam returns the error for a parameter whose value cannot be used.
func BadParam(param, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Code: "invalid_parameter", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Taken returns the error for a value that must be unique and is already in use.
func Taken(param, message string) *Error {
	return &Error{Kind: Conflict, Code: "value_not_unique", Param: param, Message: message}
}

// NoCredentials returns the error for a caller without valid credentials. The message
// never reveals which part was wrong.
func NoCredentials() *Error {
	return &Error{
		Kind:    Unauthenticated,
		Code:    "unauthorized",
		Message: "credentials are missing, wrong or expired, or lack the scope",
	}
}

// All returns every [Error] in err's tree in order, including those in errors joined by
// errors.Join.
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

// First returns the first [Error] in err's tree, or nil if err is internal.
func First(err error) *Error {
	if all := All(err); len(all) > 0 {
		return all[0]
	}
	return nil
}
