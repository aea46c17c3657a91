package servers

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// An S3Server is an object store (versitygw), which keeps objects in files.
type S3Server struct {
	Server
	Endpoint string // URL of the store
	Access   string // access key
	Secret   string // secret key
}

// S3 returns a new bucket on a shared object store.
func S3(t T) (s *S3Server, bucket string) {
	t.Helper()
	s, err := sharedS3()
	check(t, err)
	return s, s.NewBucket(t)
}

var sharedS3 = sync.OnceValues(startS3)

// OwnS3 starts an object store for a single test.
func OwnS3(t T) *S3Server {
	t.Helper()
	s, err := startS3()
	check(t, err)
	t.Cleanup(s.remove)
	return s
}

// NewBucket creates an empty bucket.
func (s *S3Server) NewBucket(t T) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text())
	check(t, os.Mkdir(filepath.Join(s.dir, "objects", name), 0o700))
	return name
}

// File returns the name of the file that contains an object, for tests that damage it.
func (s *S3Server) File(bucket, object string) string {
	return filepath.Join(s.dir, "objects", bucket, filepath.FromSlash(object))
}

// Env returns the environment variables with which selvage stores its media in the bucket.
func (s *S3Server) Env(bucket string) map[string]string {
	return map[string]string{
		"SELVAGE_MEDIA":          "s3://" + bucket + "/calls?endpoint=" + s.Endpoint + "&region=us-east-1",
		"SELVAGE_S3__ACCESS_KEY": s.Access,
		"SELVAGE_S3__SECRET_KEY": s.Secret,
	}
}

func startS3() (*S3Server, error) {
	path, err := findGateway()
	if err != nil {
		return nil, err
	}

	port, err := freePort()
	if err != nil {
		return nil, err
	}

	dir, err := newPlace("s3", nil)
	if err != nil {
		return nil, err
	}

	for _, folder := range []string{"objects", "metadata"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}

	address := fmt.Sprintf("127.0.0.1:%d", port)
	s := &S3Server{Endpoint: "http://" + address, Access: "access-" + rand.Text(), Secret: rand.Text()}
	s.Server = Server{
		Port:   port,
		dir:    dir,
		ending: syscall.SIGTERM,
		dying:  syscall.SIGKILL,
		command: []string{path, "--port", address, "--access", s.Access, "--secret", s.Secret, "--quiet",
			"posix", "--sidecar", filepath.Join(dir, "metadata"), filepath.Join(dir, "objects")},
		ready: func() error {
			conn, err := net.DialTimeout("tcp", address, patience)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}
	if err := s.start(); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// findGateway returns the path of versitygw. It builds the program unless Go's build cache contains
// it.
func findGateway() (string, error) {
	if os.Getenv("SELVAGE_TEST_SERVERS") == "none" {
		return "", missingError("versitygw, since SELVAGE_TEST_SERVERS is none")
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/selvage/selvage").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	cmd := exec.Command("go", "tool", "-n", "versitygw")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "test", "servers", "versitygw")
	out, err := cmd.Output()
	if err != nil {
		return "", missingError("versitygw")
	}
	return strings.TrimSpace(string(out)), nil
}
