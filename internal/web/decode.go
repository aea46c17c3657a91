package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// Limits on a JSON or form body. Media has its own limits.
const (
	maxBody = 1 << 20
	// maxMembers is the maximum number of members in a JSON object. Each member costs much more
	// memory than its length, and bodies are parsed before the client is authenticated.
	maxMembers = 256
	// maxItems is the maximum number of items in an array in an object.
	maxItems = 10_000
)

// Decode reads a JSON object, or a form with the same field names, into the fields of a T by their
// json tags. It ignores unknown members. If a member has the wrong type, the error is a problem
// that names the member. All these problems are joined, so that a client gets all of them in one
// response. The T contains everything that could be read.
func Decode[T any](r *http.Request) (T, error) {
	members, err := Members(r)
	if err != nil {
		var in T
		return in, err
	}
	return FromMembers[T](members)
}

// FromMembers decodes the members of an object like [Decode]. It is for callers whose bodies
// combine several types.
func FromMembers[T any](members map[string]json.RawMessage) (T, error) {
	var in T
	var errs []error
	v := reflect.ValueOf(&in).Elem()
	for i, name := range namesOf(v.Type()) {
		raw, sent := members[name]
		if !sent || name == "" {
			continue
		}

		if bytes.Count(raw, []byte(",")) > maxItems && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			errs = append(errs, problem.BadParam(name, "%s has too many items (maximum is %d)", name, maxItems))
			continue
		}
		if err := json.Unmarshal(raw, v.Field(i).Addr().Interface()); err != nil {
			errs = append(errs, problem.BadParam(name, "%s must be %s", name, kindOf(v.Field(i).Type())))
		}
	}
	return in, errors.Join(errs...)
}

// names caches the results of namesOf. It has one entry for each decoded type.
var names sync.Map

// namesOf returns the JSON names of the fields of a struct. A field without a json tag has
// the name "".
func namesOf(t reflect.Type) []string {
	if cached, ok := names.Load(t); ok {
		return cached.([]string)
	}
	fields := make([]string, t.NumField())
	for i := range fields {
		fields[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	names.Store(t, fields)
	return fields
}

// kindOf returns the JSON name of a Go type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "an array whose elements are each " + kindOf(t.Elem())
	}
	return "an object"
}

// Members returns the members of the body's JSON object by name, or its form fields as
// JSON strings. It refuses other content types, compressed bodies, bodies over 1 MiB,
// objects with more than 256 members, repeated names, and data after the object.
func Members(r *http.Request) (map[string]json.RawMessage, error) { return MembersWithin(r, maxBody) }

// MembersWithin is like [Members], but limits the body to the given number of bytes instead of 1 MiB.
func MembersWithin(r *http.Request, most int64) (map[string]json.RawMessage, error) {
	kind, err := contentType(r)
	if err != nil {
		return nil, err
	}
	if kind != "application/json" {
		return formMembers(r, kind, most)
	}

	body, err := readBody(r, most)
	if err != nil {
		return nil, err
	}
	return jsonMembers(body)
}

// contentType returns the media type of the body. It refuses compressed bodies and
// charsets other than UTF-8.
func contentType(r *http.Request) (kind string, err error) {
	if Encoded(r) {
		return "", problem.New(problem.Unsupported, "unsupported_media_type", "compressed bodies are not supported")
	}
	if r.Header.Get("Content-Type") == "application/json" { // fast path for the usual case
		return "application/json", nil
	}

	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" {
		return "", problem.New(problem.Unsupported, "unsupported_media_type", "the Content-Type is invalid")
	}

	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") {
		return "", problem.New(problem.Unsupported, "unsupported_media_type", "the charset must be UTF-8")
	}
	return kind, nil
}

func readBody(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}

	body, err := readAll(io.LimitReader(r.Body, most+1), r.ContentLength)
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong), int64(len(body)) > most:
		return nil, tooLarge(most)
	case err != nil:
		return nil, problem.New(problem.Malformed, "bad_request", "the body is incomplete")
	case !utf8.Valid(body):
		return nil, problem.New(problem.Malformed, "bad_request", "the body is not UTF-8")
	}
	return body, nil
}

// firstRead is the maximum number of bytes that are allocated for a body before it begins to arrive.
const firstRead = 16 << 10

// readAll reads a body. length is the length that the client has stated, or -1. readAll allocates
// memory as bytes arrive, so that a client that states a large length and sends nothing does not
// occupy much memory.
func readAll(r io.Reader, length int64) ([]byte, error) {
	first := int64(firstRead)
	if length >= 0 {
		first = min(first, length+1)
	}

	body := make([]byte, 0, first)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return body, err
		}
		if len(body) < cap(body) {
			continue
		}

		size := 4 * cap(body)
		if length >= int64(len(body)) {
			size = min(size, int(length)+1) // one more byte, to detect the end
		}
		body = append(make([]byte, 0, size), body...)
	}
}

func tooLarge(most int64) error {
	return problem.New(problem.TooLarge, "request_too_large", "the body is larger than %d bytes", most)
}

func formMembers(r *http.Request, kind string, most int64) (map[string]json.RawMessage, error) {
	fields, err := form(r, kind, most)
	if err != nil {
		return nil, err
	}

	members := make(map[string]json.RawMessage)
	for name, values := range fields {
		if len(values) != 1 {
			return nil, problem.New(problem.Malformed, "bad_request", "a form field is repeated or not UTF-8")
		}

		raw, err := json.Marshal(values[0])
		if err != nil {
			return nil, fmt.Errorf("reading form: %w", err)
		}
		members[name] = raw
	}
	return members, nil
}

// parseForm parses a form in either of its encodings.
func parseForm(r *http.Request, most int64) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	err := r.ParseMultipartForm(most)
	if errors.Is(err, http.ErrNotMultipart) {
		return nil
	}
	return err
}

// form reads the fields of a form. It returns an error if the body looks like JSON.
func form(r *http.Request, kind string, most int64) (url.Values, error) {
	if kind != "multipart/form-data" && kind != "application/x-www-form-urlencoded" {
		return nil, problem.New(problem.Unsupported, "unsupported_media_type", "send application/json")
	}
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	r.Body = http.MaxBytesReader(nil, r.Body, most)

	if err := parseForm(r, most); err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return nil, tooLarge(most)
		}
		return nil, problem.New(problem.Malformed, "bad_request", "the form is invalid")
	}
	if r.MultipartForm != nil {
		defer func() { _ = r.MultipartForm.RemoveAll() }()
	}

	for name, values := range r.PostForm {
		if strings.HasPrefix(strings.TrimSpace(name), "{") { // curl sends JSON as a form by default
			return nil, problem.New(problem.Unsupported, "unsupported_media_type",
				"the body looks like JSON; send Content-Type: application/json")
		}
		if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return nil, problem.New(problem.Malformed, "bad_request", "a form field is repeated or not UTF-8")
		}
	}
	return r.PostForm, nil
}
