// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// serveDir is the variable that makes this program a server, so that its memory can be measured apart from that of its clients.
const serveDir = "JOBSET_WATCHES_SERVE"

// serveGuarded is the variable that makes this server refuse writes for lack of memory.
const serveGuarded = "JOBSET_WATCHES_GUARDED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // the end of the input ends the server
			cancel()
		}()
		if err := serve(ctx, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve runs the server as it is, with an etcd in the directory, and prints its address. The token of a request is the
// name of its user, who may do everything.
func serve(ctx context.Context, dir string) error {
	store, err := etcd.Open(etcd.Config{DataDir: filepath.Join(dir, "data"), QuotaBytes: 1 << 30, DefragmentInterval: time.Hour})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Start(ctx); err != nil {
		return err
	}
	config, err := newConfig(store.Endpoint())
	if err != nil {
		return err
	}
	s, err := config.Complete().New()
	if err != nil {
		return err
	}
	s.Handler.NonGoRestfulMux.HandlePrefix("/debug/pprof/", http.HandlerFunc(pprof.Index))
	s.Handler.NonGoRestfulMux.Handle("/collect", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		runtime.GC()
		runtime.GC()
	}))
	fmt.Println(config.Generic.SecureServing.Listener.Addr())
	return s.PrepareRun().RunWithContext(ctx)
}

func newConfig(etcdEndpoint string) (*apiserver.Config, error) {
	gate := utilfeature.DefaultMutableFeatureGate
	if err := gate.AddVersioned(features.Specs()); err != nil {
		return nil, err
	}
	scheme, codecs := apiserver.NewScheme()
	generic := genericserver.NewRecommendedConfig(codecs)
	generic.FeatureGate = gate
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.ShutdownDelayDuration = 0
	generic.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, apiserver.NewDefinitionNamer())
	generic.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiserver.NewDefinitionNamer())
	generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	generic.Authentication.Authenticator = authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		u := &user.DefaultInfo{Name: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "), Groups: []string{user.AllAuthenticated}}
		if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil {
			u.Groups = append(u.Groups, serviceaccount.MakeGroupNames(namespace)...)
		}
		return &authenticator.Response{User: u}, true, nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving := genericoptions.NewSecureServingOptions().WithLoopback()
	serving.Listener, serving.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = ""
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	if err := serving.ApplyTo(&generic.SecureServing, &generic.LoopbackClientConfig); err != nil {
		return nil, err
	}
	info, _ := apiruntime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), apiruntime.ContentTypeProtobuf)
	all := apigroups.All()
	versions := all.StorageVersions()
	shared := watchcache.NewSharing(codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), versions, apiruntime.InternalGroupVersioner))
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", shared))
	options.StorageConfig.EncodeVersioner = versions
	options.StorageConfig.Transport.ServerList = []string{etcdEndpoint}
	if err := options.ApplyTo(&generic.Config); err != nil {
		return nil, err
	}
	memory := space.NewMemory()
	cached := func(schema.GroupResource) bool { return true }
	if os.Getenv(serveGuarded) == "" {
		generic.RESTOptionsGetter = watchcache.Decorate(generic.RESTOptionsGetter, shared, cached, nil)
	} else {
		stores := apiserver.Stores{Codec: shared, Cached: cached, Unreadable: unreadable.NewObjects(), Space: space.New(nil, memory)}
		generic.RESTOptionsGetter = stores.Decorate(generic.RESTOptionsGetter)
	}
	return &apiserver.Config{Generic: generic, Scheme: scheme, Codecs: codecs, APIGroups: all, Gates: gate, Memory: memory}, nil
}

// server is a server in a process of its own.
type server struct {
	url string
	pid int
}

// startServer starts a server in a process of its own, which ends with the test.
func startServer(t testing.TB, env ...string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "js-") // short, because it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "GOGC=100", serveDir+"="+dir), env...) // as it runs in clusters
	log, err := os.Create(filepath.Join(t.ArtifactDir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		content, _ := os.ReadFile(log.Name())
		t.Fatalf("the server ended: %v\n%s", err, content)
	}
	return &server{url: "https://" + strings.TrimSpace(line), pid: cmd.Process.Pid}
}

// client returns a client of a user with a connection of its own.
func (s *server) client(http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2} //nolint:gosec // a test on loopback
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport}
}

// memory returns the resident memory in MiB.
func (s *server) memory(t testing.TB, field string) float64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatalf("no %s", field)
	return 0
}
