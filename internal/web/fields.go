package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/internal/problem"
)

// Fields reads the body like [Members], but accepts repeated fields. It returns the fields of a
// form, or the members of a JSON object as text. In JSON, an array stands for a repeated field, and null
// for a missing field. An empty body without a content type has no fields.
func Fields(r *http.Request) (url.Values, error) {
	if r.ContentLength == 0 && r.Header.Get("Content-Type") == "" {
		return url.Values{}, nil
	}

	kind, err := contentType(r)
	if err != nil {
		return nil, err
	}

	if kind != "application/json" {
		return form(r, kind, maxBody)
	}

	body, err := readBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	members, err := jsonMembers(body)
	if err != nil {
		return nil, err
	}

	fields := make(url.Values, len(members))
	for name, raw := range members {
		if fields[name], err = texts(name, raw); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// texts returns a JSON value as text or, if the value is an array, each element as text.
func texts(name string, raw json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}

	var values []string
	for _, item := range list {
		item = bytes.TrimSpace(item)
		if string(item) == "null" {
			continue
		}
		if item[0] == '{' || item[0] == '[' {
			return nil, problem.BadParam(name, "%s must be a string", name)
		}

		var text string
		if json.Unmarshal(item, &text) != nil {
			text = string(item) // a number, true or false
		}
		values = append(values, text)
	}
	return values, nil
}
