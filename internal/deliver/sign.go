package deliver

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// These headers contain signatures. The validators in the vendors' libraries read them.
const (
	SHA1Header   = "X-Signalwire-Signature"
	SHA256Header = "X-Signalwire-SHA256-Signature"
	TwilioHeader = "X-Twilio-Signature" // only for forms; has the same value as SHA1Header
)

// Signed returns a Writer that sends each job's body as JSON, signed with the key of the
// receiver's project.
func Signed(
	key func(ctx context.Context, projectID string) (string, error),
) func(context.Context, Receiver) (Write, error) {
	return func(ctx context.Context, r Receiver) (Write, error) {
		key, err := key(ctx, r.ProjectID)
		return func(_ context.Context, j Job) (Message, error) {
			h := Signature(key, r.URL, j.Body)
			h.Set("Content-Type", "application/json")
			h.Set("X-Selvage-Event", j.Event)
			h.Set("X-Selvage-Delivery", j.ID)
			return Message{Header: h, Body: j.Body}, nil
		}, err
	}
}

// Signature returns the headers that prove that a holder of the key sent a JSON body. Each header
// is an HMAC over the URL, exactly as configured, and the body.
func Signature(key, url string, body []byte) http.Header {
	return http.Header{
		SHA1Header:   {mac(sha1.New, key, url, body)},
		SHA256Header: {mac(sha256.New, key, url, body)},
	}
}

// FormSignature returns the headers that prove that a holder of the key sent a form. Each header is
// an HMAC, in base64, over the URL, followed by the fields, which are sorted by name. For a GET, the URL
// contains the fields, so the parameter fields is empty.
func FormSignature(key, address string, fields url.Values) http.Header {
	text := address
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, value := range fields[name] {
			text += name + value
		}
	}

	h := hmac.New(sha1.New, []byte(key))
	h.Write([]byte(text))
	signature := base64.StdEncoding.EncodeToString(h.Sum(nil))
	return http.Header{SHA1Header: {signature}, TwilioHeader: {signature}}
}

func mac(of func() hash.Hash, key, url string, body []byte) string {
	h := hmac.New(of, []byte(key))
	h.Write([]byte(url))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
