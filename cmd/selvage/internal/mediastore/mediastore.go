// Package mediastore opens the storage for the media of recordings that the configuration names: a
// directory or a bucket of an object store, encrypted or not.
package mediastore

import (
	"crypto/sha256"
	"fmt"
	"net/url"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/keys"
)

// A Media is the open storage of media.
type Media struct {
	blob.Store
	Bucket *blob.Bucket // the object store; nil if the media is in a directory
}

// Open opens the storage of media. It creates the directory if it does not exist. Keys from the
// ring encrypt and decrypt the media. dir replaces the configured directory, unless it is "".
func Open(c config.Config, ring *keys.Ring, dir string) (Media, error) {
	secrets := func() [][sha256.Size]byte { return ring.DeriveAll("media") }
	if c.Media.Shared() {
		bucket, err := openBucket(c)
		if err != nil {
			return Media{}, err
		}
		bucket.Reserve(int64(c.Recordings.MinFree))
		return Media{blob.NewSealed(bucket, c.Recordings.Encrypt, secrets), bucket}, nil
	}

	if dir == "" {
		dir = c.MediaDir()
	}
	d, err := blob.OpenDir(dir)
	if err != nil {
		return Media{}, err
	}
	d.Reserve(int64(c.Recordings.MinFree))
	return Media{blob.NewSealed(d, c.Recordings.Encrypt, secrets), nil}, nil
}

func openBucket(c config.Config) (*blob.Bucket, error) {
	conf, err := bucketConfig(c)
	if err != nil {
		return nil, err
	}
	return blob.OpenBucket(conf)
}

// ProbeBucket checks that the object store can be reached and has the bucket. It changes nothing, not
// even in the data directory.
func ProbeBucket(c config.Config) error {
	conf, err := bucketConfig(c)
	if err != nil {
		return err
	}
	return blob.ProbeBucket(conf)
}

func bucketConfig(c config.Config) (blob.BucketConfig, error) {
	place, err := c.Media.Bucket()
	if err != nil {
		return blob.BucketConfig{}, err
	}

	public, err := url.Parse(string(c.S3.PublicURL))
	if err != nil {
		return blob.BucketConfig{}, fmt.Errorf("reading s3.public_url: %w", err)
	}

	cache := ""
	if c.S3.Serve == config.ServeCache {
		cache = c.CacheDir()
	}

	return blob.BucketConfig{
		Endpoint:  place.Endpoint,
		Name:      place.Name,
		Prefix:    place.Prefix,
		Region:    place.Region,
		Public:    *public,
		AccessKey: c.S3.AccessKey,
		SecretKey: c.S3.SecretKey,
		Spool:     c.SpoolDir(),
		Cache:     cache,
		CacheSize: int64(c.S3.CacheSize),
	}, nil
}
