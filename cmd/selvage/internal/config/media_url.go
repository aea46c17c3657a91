package config

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

const needsMedia = "needs dir:FOLDER, such as dir:media or dir:/srv/media, or s3://BUCKET/PREFIX?endpoint=URL, " +
	"such as s3://calls?endpoint=https://s3.eu-central-1.amazonaws.com&region=eu-central-1"

func (u *mediaURL) UnmarshalText(text []byte) error {
	*u = mediaURL(text)
	if u.folder() != "" {
		return nil
	}
	if !u.Shared() {
		return errors.New(needsMedia)
	}
	_, err := u.Bucket()
	return err
}

// Shared reports whether the media is in an object store, not in a directory.
func (u mediaURL) Shared() bool { return strings.HasPrefix(string(u), "s3:") }

// folder returns the FOLDER of dir:FOLDER, or "" for any other URL.
func (u mediaURL) folder() string {
	folder, ok := strings.CutPrefix(string(u), "dir:")
	if !ok {
		return ""
	}
	return folder
}

// A Bucket names a bucket of an object store and the prefix of the media in it.
type Bucket struct {
	Endpoint     url.URL // scheme and host
	Name, Prefix string
	Region       string // "" means that the server asks the store for it
}

// bucketParams lists the parameters of an s3 URL.
var bucketParams = []string{"endpoint", "region"}

// Bucket parses an s3 URL.
func (u mediaURL) Bucket() (b Bucket, err error) {
	p, err := url.Parse(string(u))
	if err != nil || p.Scheme != "s3" || p.Host == "" || p.Fragment != "" {
		return b, errors.New(needsMedia)
	}
	if p.User != nil {
		return b, errors.New("needs no password in the URL: set s3.access_key and s3.secret_key")
	}

	query, err := url.ParseQuery(p.RawQuery)
	if err != nil {
		return b, errors.New(needsMedia)
	}

	for name := range query {
		if !slices.Contains(bucketParams, name) {
			return b, fmt.Errorf("has the unknown parameter %q; there are %s", name,
				strings.Join(bucketParams, " and "))
		}
	}

	endpoint := query.Get("endpoint")
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}

	e, err := url.Parse(endpoint)
	if err != nil || (e.Scheme != "http" && e.Scheme != "https") || e.Host == "" || e.User != nil ||
		strings.Trim(e.Path, "/")+e.RawQuery != "" {
		return b, errors.New("needs http:// or https:// and a host as the endpoint, " +
			"such as endpoint=https://minio.example.org:9000")
	}

	prefix := strings.Trim(p.Path, "/")
	if prefix != "" && path.Clean(prefix) != prefix {
		return b, errors.New("needs a prefix without . and .. in it")
	}
	return Bucket{url.URL{Scheme: e.Scheme, Host: e.Host}, p.Host, prefix, query.Get("region")}, nil
}
