SELECT name, COUNT(*) FROM users JOIN orders ON users.id = orders.user_id WHERE (orders.total > 100 OR users.age < 30) GROUP BY name ORDER BY name DESC
