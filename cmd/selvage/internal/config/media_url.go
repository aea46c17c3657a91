package config

import (
	"cmp"
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
	Endpoint url.URL // scheme and host
	Name     string
	Prefix   string
	Region   string // "" means that the server asks the store for it
}

// bucketParams lists the parameters of an s3 URL.
var bucketParams = []string{"endpoint", "region"}

// Bucket parses an s3 URL.
func (u mediaURL) Bucket() (b Bucket, err error) {
	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Scheme != "s3" || parsed.Host == "" || parsed.Fragment != "" {
		return b, errors.New(needsMedia)
	}
	if parsed.User != nil {
		return b, errors.New("needs no password in the URL: set s3.access_key and s3.secret_key")
	}

	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return b, errors.New(needsMedia)
	}

	for name := range query {
		if !slices.Contains(bucketParams, name) {
			return b, fmt.Errorf("has the unknown parameter %q; there are %s",
				name, strings.Join(bucketParams, " and "))
		}
	}

	endpoint, err := url.Parse(cmp.Or(query.Get("endpoint"), "https://s3.amazonaws.com"))
	if err != nil || !isEndpoint(endpoint) {
		return b, errors.New("needs http:// or https:// and a host as the endpoint, " +
			"such as endpoint=https://minio.example.org:9000")
	}

	prefix := strings.Trim(parsed.Path, "/")
	if prefix != "" && path.Clean(prefix) != prefix {
		return b, errors.New("needs a prefix without . and .. in it")
	}
	return Bucket{
		Endpoint: url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host},
		Name:     parsed.Host,
		Prefix:   prefix,
		Region:   query.Get("region"),
	}, nil
}

// isEndpoint reports whether a URL consists of http or https and a host.
func isEndpoint(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Host != "" && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
}
