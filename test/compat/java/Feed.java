import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends one of every kind of message, consumes some of them, and prints each result as the client's own toString gives
 * it. The same program runs against the Java broker and against Quorate; the printed lines must agree.
 */
public class Feed {
    private static final String TOPIC = "FixtureTopic";
    private static final String TOPIC_ORDER = "FixtureOrder";
    private static final String TOPIC_TX = "FixtureTx";

    public static void main(String[] args) {
        try {
            feed(args[0]);
            System.exit(0);
        } catch (Exception e) { // the clients' threads would keep the program alive
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void feed(String nameServer) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("fixture-producer");
        producer.setNamesrvAddr(nameServer);
        producer.setCompressMsgBodyOverHowmuch(2048);
        producer.setSendMsgTimeout(20000); // the first send waits for class loading on both sides
        producer.start();
        sendEveryKind(producer);
        sendOrdered(producer);
        TransactionMQProducer transactions = sendTransactions(nameServer);

        CountDownLatch retried = new CountDownLatch(1);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer concurrent = consumeConcurrently(nameServer, seen, retried);
        CountDownLatch ordered = new CountDownLatch(4);
        DefaultMQPushConsumer orderly = consumeOrderly(nameServer, ordered);
        retried.await(40, TimeUnit.SECONDS);
        ordered.await(20, TimeUnit.SECONDS);
        Thread.sleep(7000); // brokers persist offsets every 5 s: a store kept as a fixture must have them
        System.out.println("consumed " + seen.size());
        concurrent.shutdown();
        orderly.shutdown();
        producer.shutdown();
        transactions.shutdown();
    }

    private static void sendEveryKind(DefaultMQProducer producer) throws Exception {
        for (int i = 0; i < 20; i++) {
            Message m = new Message(TOPIC, i % 2 == 0 ? "TagA" : "TagB", "key-" + i, utf8("body-" + i));
            m.putUserProperty("colour", i % 3 == 0 ? "red" : "blue");
            System.out.println(producer.send(m));
        }
        System.out.println(producer.send(new Message(TOPIC, "TagC", "key-big", utf8("compressible ".repeat(600)))));
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            batch.add(new Message(TOPIC, "TagBatch", "key-batch-" + i, utf8("batch-" + i)));
        }
        System.out.println(producer.send(batch));
        Message soon = new Message(TOPIC, "TagDelay", "key-delay", utf8("delayed-level-1"));
        soon.setDelayTimeLevel(1);
        System.out.println(producer.send(soon));
        Message late = new Message(TOPIC, "TagDelay", "key-delay-long", utf8("delayed-level-18"));
        late.setDelayTimeLevel(18);
        System.out.println(producer.send(late));
        System.out.println(producer.send(new Message(TOPIC, "标签", "key-utf8 second-key", utf8("正文 ünïcödé"))));
        System.out.println(producer.send(new Message(TOPIC, "", "", new byte[] {0})));
        producer.sendOneway(new Message(TOPIC, "TagOneway", "key-oneway", utf8("oneway")));
        CountDownLatch answered = new CountDownLatch(1);
        producer.send(new Message(TOPIC, "TagAsync", "key-async", utf8("async")), new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                System.out.println(result);
                answered.countDown();
            }

            @Override
            public void onException(Throwable e) {
                System.out.println("async " + e);
                answered.countDown();
            }
        });
        answered.await();
    }

    private static void sendOrdered(DefaultMQProducer producer) throws Exception {
        for (int i = 0; i < 4; i++) {
            Message m = new Message(TOPIC_ORDER, "TagO", "order-" + i, utf8("order-" + i));
            System.out.println(producer.send(m, (queues, message, arg) -> queues.get(0), i));
        }
    }

    private static TransactionMQProducer sendTransactions(String nameServer) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("fixture-tx");
        producer.setNamesrvAddr(nameServer);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                switch ((String) arg) {
                    case "commit":
                        return LocalTransactionState.COMMIT_MESSAGE;
                    case "rollback":
                        return LocalTransactionState.ROLLBACK_MESSAGE;
                    default:
                        return LocalTransactionState.UNKNOW;
                }
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                System.out.println("check " + m.getKeys());
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        for (String outcome : new String[] {"commit", "rollback", "unknown"}) {
            Message m = new Message(TOPIC_TX, "TagT", "tx-" + outcome, utf8("tx-" + outcome));
            System.out.println(producer.sendMessageInTransaction(m, outcome));
        }
        return producer;
    }

    /** key-3 is refused once, so that it comes back over the retry topic. */
    private static DefaultMQPushConsumer consumeConcurrently(String nameServer, Set<String> seen, CountDownLatch retried)
            throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("fixture-consumer");
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "TagA || TagB || TagBatch");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                if (m.getKeys().equals("key-3") && m.getReconsumeTimes() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                if (m.getReconsumeTimes() > 0) {
                    System.out.println("retried " + m);
                    retried.countDown();
                }
                seen.add(m.getKeys());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private static DefaultMQPushConsumer consumeOrderly(String nameServer, CountDownLatch ordered) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("fixture-orderly");
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC_ORDER, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(m -> ordered.countDown());
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private static byte[] utf8(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }
}
