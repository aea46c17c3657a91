package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdCertify creates a self-signed certificate for some hosts and its key: NAME HOST...
func cmdCertify(ts *testscript.TestScript, _ bool, args []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(time.Hour),
		DNSNames:     args[1:],
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)

	writePEM(ts, args[0]+".pem", "CERTIFICATE", der)
	writePEM(ts, args[0]+"-key.pem", "PRIVATE KEY", secret)
}

// writePEM writes a file with one PEM block.
func writePEM(ts *testscript.TestScript, file, kind string, der []byte) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	ts.Check(os.WriteFile(ts.MkAbs(file), text, 0o600))
}

// cmdShows waits until the first name in the certificate at URL is HOST.
func cmdShows(ts *testscript.TestScript, _ bool, args []string) {
	u, err := url.Parse(args[0])
	ts.Check(err)
	var got []string
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		conn, err := tls.Dial("tcp", u.Host, &tls.Config{InsecureSkipVerify: true, ServerName: args[1]})
		ts.Check(err)
		got = conn.ConnectionState().PeerCertificates[0].DNSNames
		ts.Check(conn.Close())
		if len(got) > 0 && got[0] == args[1] {
			return
		}
	}
	ts.Fatalf("the certificate at %s names %v, want %s", args[0], got, args[1])
}
