// Package example is a test as users of the product write theirs: their own client, and a broker for the test's lifetime.
package example

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/quorate/quorate/embed/quoratetest"
)

func TestAnOrderReachesItsConsumer(t *testing.T) {
	rlog.SetLogLevel("error")
	q := quoratetest.Start(t)

	p, err := rocketmq.NewProducer(producer.WithNameServer(q.NameServers()), producer.WithGroupName("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Shutdown() }()
	if _, err := p.SendSync(t.Context(), primitive.NewMessage("orders", []byte("a book"))); err != nil {
		t.Fatal(err)
	}

	got := make(chan string, 1)
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(q.NameServers()), consumer.WithGroupName("warehouse"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Subscribe("orders", consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			got <- string(m.Body)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Shutdown() }()
	select {
	case body := <-got:
		if body != "a book" {
			t.Fatalf("got %q", body)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the order did not arrive")
	}
}
