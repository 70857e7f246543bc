// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// peerSecret has the certificates of the members.
const peerSecret = "jobset-apiserver-serving-peers"

// renewals is how often the certificate of the members is renewed.
const renewals = 3

// renewed are faults in which the certificate of the members is renewed. Connections that exist go on. A server that starts again makes its
// connections with the new one.
var renewed = []memberFault{
	{name: "certificates renewed", kind: "certificates", happen: renewCertificates, harmless: true},
	{name: "certificates renewed and kill -9 of each", kind: "certificates", happen: func(ctx context.Context, e *embedded) error {
		if err := renewCertificates(ctx, e); err != nil {
			return err
		}
		return eachAway(ctx, e.recovered, e.servers.Servers...)
	}},
}

// renewCertificates makes the servers renew the certificate of their members several times.
func renewCertificates(ctx context.Context, e *embedded) error {
	for range renewals {
		ending, err := e.endCertificate(ctx)
		if err != nil {
			return err
		}
		err = e.servers.Servers[0].Process().Await(ctx, "shows a new certificate with the others", func(ctx context.Context) error {
			return e.showsNew(ctx, ending)
		})
		if err != nil {
			return err
		}
		time.Sleep(restartPause)
	}
	return nil
}

// endCertificate puts a certificate of the same authority into the Secret which ends so soon that it must be renewed.
func (e *embedded) endCertificate(ctx context.Context) (ending []byte, err error) {
	secrets := e.Kube.CoreV1().Secrets(apiservice.Namespace)
	secret, err := secrets.Get(ctx, peerSecret, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	signer, err := authority.Parse(secret.Data[corev1.ServiceAccountRootCAKey], secret.Data["ca.key"])
	if err != nil {
		return nil, err
	}
	now := time.Now()
	pair, err := signer.Issue(certutil.Config{
		CommonName: fmt.Sprintf("ends-soon@%d", now.UnixNano()), NotBefore: now.Add(-time.Hour), AltNames: authority.AltNames(e.hosts),
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, now.Add(time.Hour))
	if err != nil {
		return nil, err
	}
	if secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], err = pair.PEM(); err != nil {
		return nil, err
	}
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	return pair.Certificate.Raw, err
}

// showsNew returns an error unless the Secret has another certificate, which all members show to clients and to each other.
func (e *embedded) showsNew(ctx context.Context, ending []byte) error {
	secret, err := e.Kube.CoreV1().Secrets(apiservice.Namespace).Get(ctx, peerSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	renewed, err := certutil.ParseCertsPEM(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return err
	}
	if bytes.Equal(renewed[0].Raw, ending) {
		return errors.New("the certificate has not been renewed")
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(secret.Data[corev1.ServiceAccountRootCAKey])
	for n, host := range e.hosts {
		peers := filepath.Join(e.dataOf(n), "peers")
		own, err := tls.LoadX509KeyPair(filepath.Join(peers, "tls.crt"), filepath.Join(peers, "tls.key"))
		if err != nil {
			return err
		}
		config := &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
		for _, port := range []string{"2379", "2380"} {
			shown, err := certificateOf(ctx, net.JoinHostPort(host, port), config)
			if err != nil {
				return err
			}
			if !shown.Equal(renewed[0]) {
				return fmt.Errorf("%s:%s still shows %s", host, port, shown.Subject)
			}
		}
	}
	return nil
}

// certificateOf returns what a server shows.
func certificateOf(ctx context.Context, address string, config *tls.Config) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil, fmt.Errorf("%s: %T", address, conn)
	}
	return secure.ConnectionState().PeerCertificates[0], nil
}
