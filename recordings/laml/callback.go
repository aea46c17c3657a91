package laml

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/recordings"
)

// CallbackWriter returns a function that writes requests to status callbacks. The jobs are
// deliveries; see [recordings.ParseDelivery]. Each request is signed with its project's key in the
// form that the vendors' validators expect. publicURL is the prefix of each RecordingUrl.
func CallbackWriter(
	publicURL string, key func(ctx context.Context, projectID string) (string, error),
) func(context.Context, deliver.Receiver) (deliver.Write, error) {
	return func(ctx context.Context, r deliver.Receiver) (deliver.Write, error) {
		secret, err := key(ctx, r.ProjectID)
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, j deliver.Job) (deliver.Message, error) {
			d, err := recordings.ParseDelivery(j.Body)
			if err != nil {
				return deliver.Message{}, err
			}
			return callbackMessage(publicURL, secret, d)
		}, nil
	}
}

// callbackMessage returns the request for a delivery. A POST has the fields in a form, and a GET in
// the query.
func callbackMessage(publicURL, secret string, d recordings.Delivery) (deliver.Message, error) {
	fields, err := url.ParseQuery(d.Fields)
	if err != nil {
		return deliver.Message{}, fmt.Errorf("reading the fields of a callback: %w", err)
	}
	fields.Set("RecordingUrl", publicURL+recordingPath(fields.Get("AccountSid"), fields.Get("RecordingSid")))

	// Receivers compute the signature from the URL that they see, which always has a path.
	u, err := url.Parse(d.URL)
	if err != nil {
		return deliver.Message{}, fmt.Errorf("reading the URL of a callback: %w", err)
	}
	address := d.URL
	if u.Path == "" {
		u.Path = "/"
		address = u.String()
	}

	if d.Method == http.MethodGet {
		mark := "?"
		if strings.Contains(address, mark) {
			mark = "&"
		}
		address += mark + fields.Encode()
		return deliver.Message{
			Method: http.MethodGet,
			URL:    address,
			Header: deliver.FormSignature(secret, address, nil),
		}, nil
	}
	h := deliver.FormSignature(secret, address, fields)
	h.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	return deliver.Message{
		Method: http.MethodPost,
		URL:    address,
		Header: h,
		Body:   []byte(fields.Encode()),
	}, nil
}

// recordingPath returns the path of a recording, without an extension.
func recordingPath(projectID, sid string) string {
	return prefix + "/Accounts/" + projectID + "/Recordings/" + sid
}
