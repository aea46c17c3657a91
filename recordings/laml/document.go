package laml

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/recordings"
)

// A document is a recording in the format that clients read. It always has all members. Unknown
// values are null.
type document struct {
	Sid               string            `json:"sid"`
	AccountSid        string            `json:"account_sid"`
	APIVersion        string            `json:"api_version"`
	CallSid           *string           `json:"call_sid"`
	ConferenceSid     *string           `json:"conference_sid"`
	Channel           string            `json:"channel"`
	Channels          string            `json:"channels"`
	DateCreated       string            `json:"date_created"`
	DateUpdated       string            `json:"date_updated"`
	StartTime         *string           `json:"start_time"`
	EndTime           *string           `json:"end_time"`
	Duration          int64             `json:"duration"`
	Price             *string           `json:"price"`
	PriceUnit         string            `json:"price_unit"`
	Source            string            `json:"source"`
	Status            recordings.Status `json:"status"`
	ErrorCode         *string           `json:"error_code"`
	URI               string            `json:"uri"`
	SubresourceURIs   map[string]string `json:"subresource_uris"`
	EncryptionDetails *string           `json:"encryption_details"`
	Trim              string            `json:"trim"`
	Media             media             `json:"media"` // an extension of selvage
}

// A media contains values that the vendor's document does not have.
type media struct {
	MediaURL   *string  `json:"media_url"` // null without media
	MP3URL     *string  `json:"mp3_url"`
	PeaksURL   *string  `json:"peaks_url"`   // null without an outline
	URLExpires *string  `json:"url_expires"` // null if the URLs do not expire
	SampleRate int      `json:"sample_rate"`
	Codec      string   `json:"codec"`
	Bits       int      `json:"bits"`
	Bytes      int64    `json:"bytes"`
	SHA256     *string  `json:"sha256"`   // null without media
	Duration   float64  `json:"duration"` // exact duration in seconds
	Repaired   bool     `json:"repaired"`
	Repairs    []string `json:"repairs"`
	From       *string  `json:"from"`
	To         *string  `json:"to"`
	Direction  *string  `json:"direction"`
	Name       *string  `json:"name"` // the file's name; null if unknown
	Track      string   `json:"track"`
	Tags       []string `json:"tags"`
	Hold       *string  `json:"hold"` // null if the recording may be deleted
	sound
}

// document returns the document for a recording.
func (a *API) document(r recordings.Recording, urls mediaURLs) document {
	account := prefix + "/Accounts/" + r.ProjectID
	uri := account + "/Recordings/" + r.Sid
	parent := uri
	if r.ConferenceSid != "" {
		parent = account + "/Conferences/" + url.PathEscape(r.ConferenceSid) + "/Recordings/" + r.Sid
	}

	d := document{
		Sid:             r.Sid,
		AccountSid:      r.ProjectID,
		APIVersion:      "2010-04-01",
		CallSid:         optional(r.CallSid),
		ConferenceSid:   optional(r.ConferenceSid),
		Channel:         strconv.Itoa(r.Channels),
		Channels:        strconv.Itoa(r.Channels),
		DateCreated:     date(r.Created),
		DateUpdated:     date(r.Updated),
		StartTime:       optional(date(r.StartTime)),
		EndTime:         optional(endTime(r)),
		Duration:        r.Seconds(),
		PriceUnit:       "USD",
		Source:          r.Source,
		Status:          r.Status,
		ErrorCode:       optional(r.ErrorCode),
		URI:             parent + ".json",
		SubresourceURIs: map[string]string{"transcriptions": uri + "/Transcriptions.json"},
		Trim:            r.Trim,
		Media:           mediaOf(r),
	}
	if r.Status == recordings.Completed {
		d.Price = optional(price(r.Price))
	}
	urls.put(&d.Media, r)
	return d
}

// endTime returns when a recording ended, or "" while it is waiting for its media.
func endTime(r recordings.Recording) string {
	if !r.Waits.IsZero() {
		return ""
	}
	return date(r.EndTime())
}

// mediaOf returns the member media of the document for a recording, without its links.
func mediaOf(r recordings.Recording) media {
	return media{
		SampleRate: r.SampleRate,
		Codec:      r.Codec,
		Bits:       r.Bits,
		Bytes:      r.Bytes,
		SHA256:     optional(r.SHA256),
		Duration:   r.Duration().Seconds(),
		Repaired:   len(r.Repairs) > 0,
		Repairs:    append([]string{}, r.Repairs...), // not nil, which would be null in JSON
		From:       optional(r.From),
		To:         optional(r.To),
		Direction:  optional(r.Direction),
		Name:       optional(r.Name),
		Track:      r.Track,
		Tags:       append([]string{}, r.Tags...),
		Hold:       optional(r.Hold),
		sound:      soundOf(r),
	}
}

// optional returns nil for the empty string, so that JSON shows null.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// date formats a time according to RFC 2822, with the numeric time zone that clients expect. For
// the zero time, it returns "".
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC1123Z)
}

// price formats millionths of a dollar as a payment, which is a negative number with four to six
// decimals.
func price(micros int64) string {
	sign := "-"
	if micros == 0 {
		sign = ""
	}
	decimal := fmt.Sprintf("%s%d.%06d", sign, micros/1_000_000, micros%1_000_000)
	return strings.TrimSuffix(strings.TrimSuffix(decimal, "0"), "0")
}
