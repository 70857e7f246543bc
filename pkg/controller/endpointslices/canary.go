// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
)

const (
	// CanaryService is the name of the Service of the canary record, and canaryHost that of its only address.
	CanaryService = "jobset-apiserver-canary"
	canaryHost    = "canary"
	// canaryTimeout is how long the cluster has to resolve a new address, which is longer than answers are kept, and
	// canaryPoll how often it is asked.
	canaryTimeout, canaryPoll = time.Minute, time.Second
	// canaryEvery is how often the record is changed and looked up, and canaryRetry so after a failure. That many failures in a row count.
	canaryEvery, canaryRetry, canaryFailures = 10 * time.Minute, time.Minute, 3
)

// ErrUnknown is what errors wrap that say nothing about whether the cluster resolves names from EndpointSlices: DNS
// servers do not answer, or the record cannot be written.
var ErrUnknown = errors.New("it is not known whether names resolve")

// Resolver looks up the addresses of a name, as net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Canary finds out whether the cluster resolves names from EndpointSlices that we write: some clusters read Endpoints
// instead. It writes a record, and looks it up.
type Canary struct {
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Namespace is where the record is.
	Namespace string
	// Resolver is the resolver of the cluster.
	Resolver Resolver

	mu       sync.Mutex
	resolves bool
	// why is why the record does not resolve; none if that is not known.
	why cause
	// failures is how often in a row DNS servers have answered without the address, and unknown means that they have not answered since.
	failures int
	unknown  bool
	asked    chan struct{}
}

// Resolves returns whether the record resolves, else why not; without a reason, that is not known yet. A failure is
// lasting after several in a row: then all Services that were taken are given back, also by a process that has not seen the
// record resolve. The first question begins the checks.
func (c *Canary) Resolves() (resolves bool, reason string, lasting bool) {
	resolves, why, lasting := c.answer()
	return resolves, why.Message, lasting
}

// answer is Resolves, with the reason for conditions.
func (c *Canary) answer() (resolves bool, why cause, lasting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.questions() <- struct{}{}:
	default:
	}
	return c.resolves, c.why, c.failures >= canaryFailures
}

// questions returns the channel that holds whether anybody has asked. The caller holds the lock.
func (c *Canary) questions() chan struct{} {
	if c.asked == nil {
		c.asked = make(chan struct{}, 1)
	}
	return c.asked
}

// Run checks the record once anybody has asked, and again and again, until the context ends. It calls changed when the answer changes.
func (c *Canary) Run(ctx context.Context, changed func()) {
	c.mu.Lock()
	asked := c.questions()
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return
	case <-asked:
	}
	for ctx.Err() == nil {
		err := c.check(ctx)
		if ctx.Err() != nil {
			return
		}
		news, pause := c.Note(ctx, err)
		if news {
			changed()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Note notes the result of a check. It returns whether the answer has changed, and when to check again. A record that
// has resolved must fail several times.
func (c *Canary) Note(ctx context.Context, err error) (changed bool, again time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.why
	if err == nil {
		changed = !c.resolves
		c.resolves, c.why, c.failures, c.unknown = true, cause{}, 0, false
		canaryResolves.Set(1)
		if changed {
			klog.FromContext(ctx).Info("The canary record resolves: EndpointSlices of this controller have effect")
		}
		return changed, canaryEvery
	}
	canaryResolves.Set(0)
	if errors.Is(err, ErrUnknown) {
		if !c.unknown {
			klog.FromContext(ctx).Error(err, "The canary record cannot be looked up")
		}
		if c.unknown = true; !c.resolves {
			c.why = c.unwritten(err)
		}
		return c.why != before, canaryRetry
	}
	if c.failures++; c.failures <= canaryFailures { // in a cluster whose DNS server reads Endpoints, it goes on like this
		klog.FromContext(ctx).Error(err, "The canary record does not resolve", "failures", c.failures)
	}
	if c.resolves && c.failures < canaryFailures {
		return false, canaryRetry
	}
	c.resolves, c.why, c.unknown = false, canaryNotResolved(fmt.Sprintf("the canary record %s does not resolve", c.name())), false
	return c.why != before || c.failures == canaryFailures, canaryRetry
}

// unwritten returns why it is not known whether the record resolves. A refusal stays in its first words, because answers of the API have
// random names. What DNS servers have answered before is kept while they do not answer.
func (c *Canary) unwritten(err error) cause {
	var refusedRecord *recordError
	switch {
	case errors.As(err, &refusedRecord) && refused(err) && c.why.Reason == refusedRecord.reason:
		return c.why
	case errors.As(err, &refusedRecord) && refused(err):
		return canaryRefused(refusedRecord)
	case c.why.Reason == ReasonCanaryNotResolved:
		return c.why
	}
	return canaryNotResolved(fmt.Sprintf("the canary record %s cannot be looked up", c.name()))
}

// recordError is why the record could not be written.
type recordError struct {
	// reason is the reason if the API has refused it, and object what was to be written.
	reason, object string
	err            error
}

// Error implements error.
func (e *recordError) Error() string { return fmt.Sprintf("writing the %s: %v", e.object, e.err) }

// Unwrap returns the answer of the API.
func (e *recordError) Unwrap() error { return e.err }

func (c *Canary) name() string {
	return strings.Join([]string{canaryHost, CanaryService, c.Namespace, "svc"}, ".")
}

// check writes a new address and waits until the cluster resolves it. Without an answer from a DNS server, nothing is known.
func (c *Canary) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	address, err := c.publish(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	var answered error
	for {
		got, err := c.Resolver.LookupNetIP(ctx, "ip", c.name())
		for i := range got {
			got[i] = got[i].Unmap()
		}
		var dns *net.DNSError
		switch {
		case err == nil && slices.Equal(got, []netip.Addr{address}):
			return nil
		case err == nil:
			answered = fmt.Errorf("it resolves to %v, not to %s", got, address)
		case errors.As(err, &dns) && dns.IsNotFound:
			answered = err
		}
		select {
		case <-ctx.Done():
			if answered != nil {
				return fmt.Errorf("looking up %s: %w", c.name(), answered)
			}
			return fmt.Errorf("%w: looking up %s: %w", ErrUnknown, c.name(), err)
		case <-time.After(canaryPoll):
		}
	}
}

// publish writes the record with a new address that no host has.
func (c *Canary) publish(ctx context.Context) (netip.Addr, error) {
	service, err := c.service(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	n := byte(1 + rand.IntN(254))
	address := netip.AddrFrom4([4]byte{192, 0, 2, n}) // for documentation (RFC 5737)
	if slices.Equal(service.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv6Protocol}) {
		address = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: n}) // RFC 3849
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: CanaryService, Namespace: c.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
			Labels: map[string]string{
				discoveryv1.LabelServiceName: CanaryService, discoveryv1.LabelManagedBy: endpointslices.ManagedBy, corev1.IsHeadlessService: "",
			},
		},
		AddressType: endpointslices.AddressTypeOf(address),
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address.String()}, Hostname: ptr.To(canaryHost), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		}},
	}
	client := c.Kube.DiscoveryV1().EndpointSlices(c.Namespace)
	// The type of addresses cannot be changed, and a record of an earlier Service is about to be deleted.
	if err := client.Delete(ctx, CanaryService, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return address, &recordError{ReasonSlicesRefused, c.object("EndpointSlice"), err}
	}
	if _, err := client.Create(ctx, want, metav1.CreateOptions{}); err != nil {
		return address, &recordError{ReasonSlicesRefused, c.object("EndpointSlice"), err}
	}
	return address, nil
}

// service returns the Service of the record, and creates it if there is none.
func (c *Canary) service(ctx context.Context) (*corev1.Service, error) {
	client := c.Kube.CoreV1().Services(c.Namespace)
	found, err := client.Get(ctx, CanaryService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = client.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: CanaryService, Namespace: c.Namespace},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{jobsetv1alpha2.EndpointsKey: canaryHost},
			},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, &recordError{ReasonServiceRefused, c.object("Service"), err}
	}
	return found, nil
}

// object names an object of the record.
func (c *Canary) object(kind string) string { return kind + " " + c.Namespace + "/" + CanaryService }
