package laml

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// urlTTL is the query parameter with the lifetime of a document's links in seconds.
const urlTTL = "MediaUrlTtl"

// defaultLinkLifetime is the default lifetime of links.
const defaultLinkLifetime = time.Hour

// mediaURLs writes links to media into documents.
type mediaURLs struct {
	public string // prefix of each URL
	sign   func(rec recordings.Recording, f recordings.Format) (recordings.Link, error)
}

// mediaURLs returns the mediaURLs for a caller. If the project's media needs signed links,
// mediaURLs signs the links.
func (a *API) mediaURLs(r *http.Request, o recordings.Owner) (mediaURLs, error) {
	lifetime, err := parseLinkLifetime(r.URL.Query().Get(urlTTL))
	if err != nil {
		return mediaURLs{}, err
	}
	auth, err := a.recordings.MediaAuth(r.Context(), o.ProjectID)
	if err != nil {
		return mediaURLs{}, err
	}

	urls := mediaURLs{public: a.publicURL}
	if auth == recordings.Signed {
		urls.sign = func(rec recordings.Recording, f recordings.Format) (recordings.Link, error) {
			return a.recordings.Sign(rec, f, lifetime, o.Maker)
		}
	}
	return urls, nil
}

// parseLinkLifetime parses the lifetime of links in seconds. "" means the default.
func parseLinkLifetime(seconds string) (time.Duration, error) {
	if seconds == "" {
		return defaultLinkLifetime, nil
	}
	limit := int(recordings.LongestLink / time.Second)
	n, err := strconv.Atoi(seconds)
	if err != nil || n < 1 || n > limit {
		return 0, problem.BadParam(urlTTL, "%s must be a number of seconds from 1 to %d", urlTTL, limit)
	}
	return time.Duration(n) * time.Second, nil
}

// put sets the links in m, one for each form in which a recording's media is available.
func (u mediaURLs) put(m *media, rec recordings.Recording) {
	if f := rec.BestFormat(); rec.Can(f) {
		m.MediaURL = u.url(m, rec, f, MediaPath(rec, f))
	}
	if rec.Can(recordings.MP3) {
		m.MP3URL = u.url(m, rec, recordings.MP3, MediaPath(rec, recordings.MP3))
	}
	if rec.HasMedia() && rec.Levels != nil {
		m.PeaksURL = u.url(m, rec, recordings.WAV, peaksPath(rec))
	}
}

// url returns a link to path. If links are signed, url signs the link for format f, and sets its
// expiry in m. If the link cannot be signed, url returns nil.
func (u mediaURLs) url(m *media, rec recordings.Recording, f recordings.Format, path string) *string {
	link := u.public + path
	if u.sign != nil {
		signed, err := u.sign(rec, f)
		if err != nil {
			return nil
		}
		link = WithLink(link, signed)
		m.URLExpires = optional(date(signed.Expires))
	}
	return &link
}

// MediaURLs returns a function that returns the URL of a recording's media for a caller, or "" if
// the recording has no media.
func (a *API) MediaURLs(r *http.Request, o recordings.Owner) (func(recordings.Recording) string, error) {
	urls, err := a.mediaURLs(r, o)
	if err != nil {
		return nil, err
	}
	return func(rec recordings.Recording) string {
		var m media
		urls.put(&m, rec)
		if m.MediaURL == nil {
			return ""
		}
		return *m.MediaURL
	}, nil
}

// MediaPath returns the path of a recording's media in format f.
func MediaPath(rec recordings.Recording, f recordings.Format) string {
	path := prefix + "/Accounts/" + rec.ProjectID + "/Recordings/" + rec.Sid
	if f == recordings.Original {
		return path + ".wav?" + original + "=true"
	}
	return path + "." + string(f)
}

// original is the query parameter that requests the uploaded bytes.
const original = "Original"

// WithLink adds the expiry and signature of a link to the URL of a recording's media.
func WithLink(mediaURL string, l recordings.Link) string {
	separator := "?"
	if strings.Contains(mediaURL, "?") {
		separator = "&"
	}
	return mediaURL + separator + "exp=" + strconv.FormatInt(l.Expires.Unix(), 10) +
		"&sig=" + url.QueryEscape(l.Signature)
}

// mayFetch returns the owner whose recordings the request may fetch. If the project's media is
// public, or the request has a valid link to sid in one of formats, the owner is the whole project.
// Otherwise, it is the caller.
func (a *API) mayFetch(
	r *http.Request, sid string, formats ...recordings.Format,
) (o recordings.Owner, auth recordings.MediaAuth, err error) {
	o.ProjectID = r.PathValue("AccountSid")
	auth, err = a.recordings.MediaAuth(r.Context(), o.ProjectID)
	if err != nil {
		return recordings.Owner{}, auth, err
	}
	if auth == recordings.Public {
		o.OperatorID = a.operatorOf(r)
		return o, auth, nil
	}

	query := r.URL.Query()
	exp, sig := query["exp"], query["sig"]
	hasLink := auth == recordings.Signed && len(sig) > 0
	if hasLink && len(sig) == 1 && len(exp) == 1 {
		for _, f := range formats {
			valid, err := a.recordings.Verify(o.ProjectID, sid, f, exp[0], sig[0])
			if err != nil {
				return recordings.Owner{}, auth, err
			}
			if valid {
				o.OperatorID = a.operatorOf(r)
				return o, auth, nil
			}
		}
	}

	caller, err := a.credentials(r)
	if unauthenticated(err) && hasLink && r.Header.Get("Authorization") == "" {
		// The status is not 401, so that browsers do not ask for a password when a page embeds an
		// expired link.
		err = problem.New(problem.Forbidden, "forbidden", "the link has expired or is invalid")
	}
	if err != nil {
		return recordings.Owner{}, auth, err
	}
	if caller.ProjectID != o.ProjectID {
		return recordings.Owner{}, auth, problem.NoSuch("recording")
	}
	return caller, auth, nil
}

// operatorOf returns the operator who fetches media that need no credentials, or "". The operator is
// signed in to the dashboard and may read the recordings of the project in the path.
func (a *API) operatorOf(r *http.Request) string {
	if r.Header.Get("Cookie") == "" || r.Header.Get("Authorization") != "" {
		return ""
	}
	caller, err := a.credentials(r)
	if err != nil || caller.ProjectID != r.PathValue("AccountSid") {
		return ""
	}
	return caller.OperatorID
}
