// Package script lets a webhook of the operator decide what happens in calls to scripts.
//
// A request contains the call, the script and the result of the last verb as JSON. It is signed
// like webhooks of projects. The response contains the next verbs. Requests, responses and sounds
// are limited in size and time. The egress policy limits the hosts of sounds.
package script

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
)

// The limits of a request to the webhook.
const (
	timeout   = 10 * time.Second
	maxAnswer = 64 << 10
	maxVerbs  = 20
	maxTo     = 256 // bytes of an address
	maxRecord = 600 // seconds
	maxDigits = 32
	maxWait   = 60 // seconds to wait for each digit
)

// Config configures a Webhook.
type Config struct {
	URL    string        // receives the requests; required
	Secret string        // signs the requests; required
	Egress egress.Policy // permits the hosts of sounds; the host and port of URL are always permitted

	// Answered is called after each request for verbs, with its duration and its result, unless the
	// caller hung up meanwhile. If Answered is nil, requests are not counted.
	Answered func(took time.Duration, err error)

	// Trace returns a client whose requests are traced. If Trace is nil, requests are not traced.
	Trace func(*http.Client) *http.Client
}

// A Webhook implements calls.Scripts.
type Webhook struct {
	url    *url.URL
	secret string
	egress egress.Policy // the policy that the client in others follows
	client *http.Client  // for the host and port of url
	others *http.Client  // for sounds elsewhere
	sounds soundCount

	answered func(took time.Duration, err error)
}

var _ calls.Scripts = (*Webhook)(nil)

// New returns a Webhook.
func New(c Config) (*Webhook, error) {
	at, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing the URL of scripts: %w", err)
	}
	policy := c.Egress
	policy.Allow = append(slices.Clone(policy.Allow), at.Hostname())
	client, others := policy.Client(), c.Egress.Client()
	if c.Trace != nil {
		client, others = c.Trace(client), c.Trace(others)
	}
	w := &Webhook{url: at, secret: c.Secret, egress: c.Egress, client: client, others: others, answered: c.Answered}
	if w.answered == nil {
		w.answered = func(time.Duration, error) {}
	}
	return w, nil
}

// Probe returns an error unless the webhook's server responds, with any status. It sends a HEAD
// request without a signature, which no webhook mistakes for a call.
func (w *Webhook) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, w.url.String(), nil)
	if err != nil {
		return errors.New("the URL is invalid")
	}
	req.Header.Set("User-Agent", "selvage")
	resp, err := w.client.Do(req)
	if err != nil {
		return errors.New(egress.Reason(err))
	}
	return resp.Body.Close()
}

// A question is the body of a request.
type question struct {
	Step   int            `json:"step"`
	Call   calls.Document `json:"call"`
	Script described      `json:"script"`
	Last   *result        `json:"last"` // null in the first step
}

// A described is a script with the settings of its kind, such as its content or URL.
type described struct {
	ID          string       `json:"id"`
	Type        string       `json:"type"`
	DisplayName string       `json:"display_name"`
	Settings    kinds.Values `json:"settings"`
}

type result struct {
	Verb   calls.VerbName `json:"verb"`
	Error  string         `json:"error,omitempty"`
	Reason string         `json:"reason,omitempty"`

	Digits       string `json:"digits,omitempty"`
	RecordingSid string `json:"recording_sid,omitempty"`
}

// Next implements calls.Scripts.
func (w *Webhook) Next(ctx context.Context, s calls.ScriptStep) ([]calls.Verb, error) {
	began := time.Now()
	verbs, err := w.next(ctx, s)
	if err == nil || ctx.Err() == nil {
		w.answered(time.Since(began), err)
	}
	return verbs, err
}

func (w *Webhook) next(ctx context.Context, s calls.ScriptStep) ([]calls.Verb, error) {
	q := question{
		Step: s.Step,
		Call: s.Call,
		Script: described{
			ID:          s.Script.ID,
			Type:        s.Script.Type,
			DisplayName: s.Script.DisplayName,
			Settings:    s.Script.Fields,
		},
	}
	if s.Last != nil {
		r := result(*s.Last)
		q.Last = &r
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	header := deliver.Signature(w.secret, w.url.String(), body)
	header.Set("Content-Type", "application/json")
	answer, err := exchange(ctx, w.client, http.MethodPost, w.url.String(), header, body, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("asking calls.scripts.url: %w", err)
	}
	verbs, err := parse(answer)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of calls.scripts.url: %w", err)
	}
	return verbs, nil
}

// exchange sends a request and returns the body of the response, which has at most limit bytes.
func exchange(
	ctx context.Context, client *http.Client, method, address string, header http.Header, body []byte, limit int64,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	req.Header = header
	req.Header.Set("User-Agent", "selvage")

	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.New(egress.Reason(err))
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server returned status %d", resp.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, errors.New(egress.Reason(err))
	case int64(len(answer)) > limit:
		return nil, fmt.Errorf("the response is larger than %d bytes", limit)
	}
	return answer, nil
}

// A verb is an entry of a response. Each verb uses some of the parameters that follow Verb.
type verb struct {
	Verb    calls.VerbName `json:"verb"`
	URL     string         `json:"url"`
	Digits  int            `json:"digits"`
	Seconds int            `json:"seconds"`
	To      string         `json:"to"`
	Cause   string         `json:"cause"`
}

// parse returns the verbs in the body of a response.
func parse(body []byte) ([]calls.Verb, error) {
	var r struct {
		Verbs []verb `json:"verbs"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("there is text after the JSON")
	}
	if len(r.Verbs) > maxVerbs {
		return nil, fmt.Errorf("there are %d verbs, more than %d", len(r.Verbs), maxVerbs)
	}

	verbs := make([]calls.Verb, len(r.Verbs))
	for i, v := range r.Verbs {
		if err := v.check(); err != nil {
			return nil, fmt.Errorf("verb %d: %w", i+1, err)
		}
		verbs[i] = calls.Verb{Name: v.Verb, URL: v.URL, Digits: v.Digits, Seconds: v.Seconds, To: v.To, Cause: v.Cause}
	}
	return verbs, nil
}

// check returns an error for an unknown verb, for missing parameters, and for parameters that the
// verb does not have.
func (v verb) check() error {
	switch v.Verb {
	case calls.AnswerVerb:
		return v.only(verb{})
	case calls.PlayVerb:
		return v.checkPlay()
	case calls.RecordVerb:
		return cmp.Or(v.only(verb{Seconds: v.Seconds}),
			need(v.Seconds >= 1 && v.Seconds <= maxRecord, "record needs seconds from 1 to 600"))
	case calls.ConnectVerb:
		return cmp.Or(v.only(verb{To: v.To}), need(v.To != "" && len(v.To) <= maxTo, "connect needs an address in to"))
	case calls.HangUpVerb:
		_, known := calls.ScriptCauses[v.Cause]
		return cmp.Or(v.only(verb{Cause: v.Cause}), need(known, "hangup has an unknown cause"))
	}
	return fmt.Errorf("%.20q is not a verb", string(v.Verb))
}

// checkPlay implements check for the verb play.
func (v verb) checkPlay() error {
	return cmp.Or(v.only(verb{URL: v.URL, Digits: v.Digits, Seconds: v.Seconds}),
		need(v.URL != "", "play needs a url"),
		need(v.Digits >= 0 && v.Digits <= maxDigits, "play needs digits from 1 to 32"),
		need(v.Seconds >= 0 && v.Seconds <= maxWait, "play needs seconds from 1 to 60"),
		need(v.Digits > 0 || v.Seconds == 0, "play has seconds without digits"))
}

// only returns an error if v has parameters that are not in own.
func (v verb) only(own verb) error {
	own.Verb = v.Verb
	return need(v == own, string(v.Verb)+" has a parameter of another verb")
}

// need returns an error with the given text if ok is false.
func need(ok bool, text string) error {
	if ok {
		return nil
	}
	return errors.New(text)
}
