package rest

import (
	"time"

	"github.com/selvage/selvage/recordings"
)

// A document is a recording in the format of the vendor's native API.
type document struct {
	ID                string            `json:"id"`
	ProjectID         string            `json:"project_id"`
	CreatedAt         time.Time         `json:"created_at"`
	UpdatedAt         time.Time         `json:"updated_at"`
	DurationInSeconds int64             `json:"duration_in_seconds"`
	ErrorCode         string            `json:"error_code,omitempty"`
	Price             float64           `json:"price"`
	PriceUnit         string            `json:"price_unit"`
	Status            recordings.Status `json:"status"`
	URL               *string           `json:"url"` // null without media
	Stereo            bool              `json:"stereo"`
	ByteSize          int64             `json:"byte_size,omitempty"`
	Track             string            `json:"track"`
	ConferenceID      string            `json:"relay_conference_id,omitempty"`
	Tags              []string          `json:"tags"`
	Hold              *string           `json:"hold"` // null if the recording may be deleted

	// SIPLegID is the id of the call.
	SIPLegID string `json:"relay_sip_leg_id,omitempty"`
}

// describe returns the document for a recording. url is the URL of its media, or "".
func describe(r recordings.Recording, url string) document {
	d := document{
		ID:                r.Sid,
		ProjectID:         r.ProjectID,
		CreatedAt:         r.Created.UTC().Truncate(time.Second),
		UpdatedAt:         r.Updated.UTC().Truncate(time.Second),
		DurationInSeconds: r.Seconds(),
		ErrorCode:         r.ErrorCode,
		PriceUnit:         "USD",
		Status:            r.Status,
		Stereo:            r.Channels == 2,
		ByteSize:          r.Bytes,
		Track:             r.Track,
		ConferenceID:      r.ConferenceSid,
		SIPLegID:          r.CallSid,
		Tags:              append([]string{}, r.Tags...), // not nil, which would be null in JSON
	}

	if r.Hold != "" {
		d.Hold = &r.Hold
	}
	if r.Status == recordings.Completed && r.Price != 0 {
		d.Price = -float64(r.Price) / 1e6
	}
	if url != "" {
		d.URL = &url
	}
	return d
}
