package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// fetchTimeout is how long fetching a document may take, including its body.
const fetchTimeout = 5 * time.Second

// Fetcher returns a function that fetches a document of at most limit bytes. Its errors contain no
// address, so they may be shown to clients.
func (p Policy) Fetcher() func(ctx context.Context, url string, limit int64) ([]byte, error) {
	client := p.Client()
	return func(ctx context.Context, url string, limit int64) ([]byte, error) {
		if err := p.Check("URL", url); err != nil {
			return nil, err
		}
		return fetch(ctx, client, url, limit)
	}
}

func fetch(ctx context.Context, client *http.Client, url string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}

	req.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {"selvage"}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.New(Reason(err))
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server returned status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, errors.New(Reason(err))
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("the document is larger than %d bytes", limit)
	}
	return body, nil
}

// Reason describes why a request failed. It does not quote err, which may contain a URL or reveal
// facts about the network.
func Reason(err error) string {
	var dns *net.DNSError
	var tlsErr *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var op *net.OpError
	var alert tls.AlertError
	if p := problem.First(err); p != nil {
		return p.Message // an error from the policy, which may be shown
	}
	switch {
	case IsTimeout(err):
		return "no response in time"
	case errors.As(err, &dns):
		return "the host name cannot be resolved"
	case errors.As(err, &tlsErr), errors.As(err, &unknown):
		return "its certificate is not trusted"
	case errors.As(err, &record), errors.As(err, &alert):
		return "the server does not use HTTPS"
	case errors.As(err, &op) && op.Op == "dial":
		return "connecting to the server failed"
	}
	return "the connection was lost"
}

// IsTimeout reports whether err is a timeout.
func IsTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
