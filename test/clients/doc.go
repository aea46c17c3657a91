// Package clients tests a running server with independent programs:
//   - oidc-client-ts in a browser app in Chromium;
//   - openid-client and the compatibility API's client in Node;
//   - the stock browser SDK in Chromium and in Node;
//   - go-oidc, and requests in the form that native apps send;
//   - Chromium, Firefox's certificate store, curl and Go, which must trust the server's
//     certificate;
//   - an ACME server, from which the server orders certificates.
package clients
