package certs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// reasons sends requests to an ACME directory. If a response says why the directory could not validate a
// host, reasons records it, because the error that autocert returns says only that all challenges failed.
type reasons struct {
	next http.RoundTripper

	mu sync.Mutex
	by map[string]string // reasons by host
}

// authorization holds the members of an ACME authorization that are used (RFC 8555, section 7.1.4).
type authorization struct {
	Status     string `json:"status"`
	Identifier struct {
		Value string `json:"value"`
	} `json:"identifier"`
	Challenges []struct {
		Type  string `json:"type"`
		Error struct {
			Detail string `json:"detail"`
		} `json:"error"`
	} `json:"challenges"`
}

// These limits bound how much of a response is read, and how long a reported reason may be.
const (
	maxAnswer = 1 << 20
	maxReason = 400
)

// RoundTrip implements http.RoundTripper. It leaves the body of the response readable from its
// start.
func (r *reasons) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	isJSON := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	if resp.StatusCode != http.StatusOK || !isJSON {
		return resp, nil
	}

	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		_ = resp.Body.Close() // the read error is returned
		return nil, err
	}

	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}

	r.note(body)
	return resp, nil
}

// note records why an authorization became invalid.
func (r *reasons) note(body []byte) {
	var read authorization
	if json.Unmarshal(body, &read) != nil {
		return
	}
	host := read.Identifier.Value
	if read.Status != "invalid" || host == "" {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for _, challenge := range read.Challenges {
		known, detail := r.by[host], challenge.Error.Detail
		if detail != "" && len(known) < maxReason {
			r.by[host] = fmt.Sprintf("%s; %s: %.*s", known, challenge.Type, maxReason, detail)
		}
	}
}

// addTo returns err together with the reasons recorded for host, and forgets the reasons.
func (r *reasons) addTo(err error, host string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.by[host]
	delete(r.by, host)
	return fmt.Errorf("%w%s", err, known)
}
