// Command peers serves the example of zitadel/oidc, an OpenID provider that keeps everything in
// memory, so that `make bench-peers` can compare it with selvage. It uses the example's user and
// storage, but signs with ES256 and logs nothing. It prints "ready" and runs until it is killed.
//
// It is a separate module, so that selvage does not depend on the example's requirements.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// redirectURI is the URI at which the flows of the benchmark end. Nothing listens there.
const redirectURI = "http://localhost/callback"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peers HOST:PORT")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func serve(address string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating a key: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}

	storage.RegisterClients(storage.NativeClient("native", redirectURI),
		storage.WebClient("web", "secret", redirectURI))
	issuer := "http://" + address + "/"
	rows := signedStorage{storage.NewStorage(storage.NewUserStore(issuer)), key}
	handler := exampleop.SetupServer(issuer, rows, slog.New(slog.DiscardHandler), false)
	fmt.Println("ready")
	return (&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// A signedStorage is the example's storage with a P-256 key and an additional client, which gets
// JWT access tokens.
type signedStorage struct {
	*storage.Storage
	key *ecdsa.PrivateKey
}

func (s signedStorage) SigningKey(context.Context) (op.SigningKey, error) {
	return privateKey{s.key}, nil
}

func (s signedStorage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.ES256}, nil
}

func (s signedStorage) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{publicKey{s.key}}, nil
}

// serviceID and signedID are the IDs of the clients that use client_credentials. The first is the
// example's own client. The second differs only in the format of its access tokens.
const (
	serviceID = "sid1"
	signedID  = "sid1-jwt"
)

// ClientCredentials overrides the example's method to support signedID as well.
func (s signedStorage) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	if id != signedID {
		return s.Storage.ClientCredentials(ctx, id, secret)
	}
	c, err := s.Storage.ClientCredentials(ctx, serviceID, secret)
	if err != nil {
		return nil, err
	}
	return signedClient{c}, nil
}

// ClientCredentialsTokenRequest overrides the example's method to support signedID as well.
func (s signedStorage) ClientCredentialsTokenRequest(
	ctx context.Context, id string, scopes []string,
) (op.TokenRequest, error) {
	if id == signedID {
		id = serviceID
	}
	return s.Storage.ClientCredentialsTokenRequest(ctx, id, scopes)
}

// A signedClient is a client whose access tokens are JWTs.
type signedClient struct{ op.Client }

func (signedClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// keyID is the ID of the only key.
const keyID = "bench"

type privateKey struct{ key *ecdsa.PrivateKey }

func (k privateKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k privateKey) Key() any                                    { return k.key }
func (k privateKey) ID() string                                  { return keyID }

type publicKey struct{ key *ecdsa.PrivateKey }

func (k publicKey) ID() string                         { return keyID }
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }
